// The device functions that emitted kernels call: types, conversions and arithmetic that CUDA C++ lacks
// without its headers. A program prints only those that it uses. Thread rule: one owner.
#pragma once

#include <map>
#include <set>
#include <string>

namespace mycc {

class Prelude {
 public:
  // The name itself, to be written into code; the function (and what it calls) will be part of Text().
  // REQUIRES: a name of prelude.cc.
  std::string Use(const std::string& name);
  // A function that is made for the program, printed after the others. The same name has the same text.
  void Add(const std::string& name, const std::string& text);
  std::string Text() const;

 private:
  std::set<std::string> used_;
  std::map<std::string, std::string> added_;
};

}  // namespace mycc
