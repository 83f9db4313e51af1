// The device functions that emitted kernels call: types, conversions and arithmetic that CUDA C++ has not
// without headers. Only those that a program uses are printed. Thread rule: one owner.
#pragma once

#include <set>
#include <string>

namespace mycc {

class Prelude {
 public:
  // The name itself, to be written into code; the function (and what it calls) will be part of Text().
  // REQUIRES: a name of prelude.cc.
  std::string Use(const std::string& name);
  std::string Text() const;

 private:
  std::set<std::string> used_;
};

}  // namespace mycc
