// The source texts of the prelude's functions, by subject. Constant data.
#pragma once

#include <span>

namespace mycc {

// A text of the prelude: as it is, or that of a function of one statement of PTX.
struct PreludeFragment {
  const char* name;
  const char* needs;  // other fragments, separated by blanks
  const char* text;   // of a statement: its comment
  const char* parameters = nullptr;
  const char* ptx = nullptr;  // null: the text is all
};

// A statement that orders memory. Its operands are the parameters, as they are numbered; one whose name
// begins with k is a template parameter.
constexpr PreludeFragment Ptx(const char* name, const char* parameters, const char* ptx,
                              const char* comment = "") {
  return {name, "", comment, parameters, ptx};
}

std::span<const PreludeFragment> TensorCoreFragments();

}  // namespace mycc
