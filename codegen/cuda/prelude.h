// The device functions that emitted kernels call: types, conversions and arithmetic that CUDA C++ lacks
// without its headers. A program contains only those that it uses. Thread rule: one owner.
#pragma once

#include <map>
#include <set>
#include <string>

namespace mycc {

// A function made for a program.
struct DeviceFunction {
  std::string name, text;
};

class Prelude {
 public:
  // Returns `name`, and adds that function and all that it calls to Text(). REQUIRES: a name of prelude.cc.
  std::string Use(const std::string& name);
  // Adds this function, and returns its name; Text() has it after the others. REQUIRES: the same text for the
  // same name.
  std::string Add(const DeviceFunction& function);
  std::string Text() const;

 private:
  std::set<std::string> used_;
  std::map<std::string, std::string> added_;
};

}  // namespace mycc
