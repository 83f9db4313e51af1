// The table of primitives: arguments, usage, which begins with the name in a trace, and function. A new
// primitive needs a function, a row in table.cc and its name in primitives.h, or in annotate.h for one that
// only marks a loop. Thread rule: constant data.
#pragma once

#include <string>
#include <string_view>

#include "codegen/schedule/primitives/primitives.h"

namespace mycc {

struct PrimitiveInfo {
  // One letter for each argument: n a name, i an integer, N a list of names, I a list of integers.
  std::string_view signature;
  std::string_view usage;
  Primitive* apply;

  constexpr std::string_view name() const { return usage.substr(0, usage.find('(')); }
};

const PrimitiveInfo* FindPrimitive(std::string_view name);  // null when there is none
// "unknown primitive spilt; expected one of split, reorder, ... (did you mean split?)".
std::string UnknownPrimitive(const std::string& name);

}  // namespace mycc
