// The table of primitives: name in a trace, arguments, and function. A new primitive needs a function, a row
// in table.cc and a line in primitives.h, or in annotate.h for one that only marks a loop. Thread rule:
// constant data.
#pragma once

#include <string>
#include <string_view>

#include "codegen/schedule/primitives/primitives.h"

namespace mycc {

struct PrimitiveInfo {
  std::string_view name;
  // One letter for each argument: n a name, i an integer, N a list of names, I a list of integers.
  std::string_view signature;
  std::string_view usage;
  Primitive* apply;
};

const PrimitiveInfo* FindPrimitive(std::string_view name);  // null when there is none
// "unknown primitive spilt; expected one of split, reorder, ... (did you mean split?)".
std::string UnknownPrimitive(const std::string& name);

}  // namespace mycc
