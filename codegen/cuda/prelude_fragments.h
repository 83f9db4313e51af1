// The source texts of the prelude's functions, by subject. Constant data.
#pragma once

#include <span>

namespace mycc {

// A text of the prelude, in which $0 stands for the name, $1 and $2 for `first` and `second`; or the function
// of one statement of PTX, which has no text, but parameters (`first`) and the PTX (`second`).
struct PreludeFragment {
  const char* name;
  const char* needs;  // other fragments, separated by blanks
  const char* text;
  const char* first = "";
  const char* second = "";
  const char* comment = "";  // before the function
  bool of_memory = true;     // of PTX: no access to memory moves across the statement
};

// A function of one statement, which orders memory unless `of_memory` is false. Its operands are the
// parameters, as they are numbered; one whose name begins with k is a template parameter.
constexpr PreludeFragment Ptx(const char* name, const char* parameters, const char* ptx,
                              const char* comment = "", bool of_memory = true) {
  return {name, "", nullptr, parameters, ptx, comment, of_memory};
}

std::span<const PreludeFragment> TensorCoreFragments();

}  // namespace mycc
