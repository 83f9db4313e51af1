// The source texts of the prelude's functions, by subject. Constant data.
#pragma once

#include <span>

namespace mycc {

struct PreludeFragment {
  const char* name;
  const char* needs;  // other fragments, separated by blanks
  const char* text;
};

std::span<const PreludeFragment> TensorCoreFragments();

}  // namespace mycc
