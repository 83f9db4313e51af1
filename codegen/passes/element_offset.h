// Elements that lie next to each other in memory, for accesses of several at once. Thread rule: pure
// functions.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/expr/affine.h"
#include "codegen/expr/buffer.h"

namespace mycc {

// The largest number of elements up to `most`, a power of two, that divides the offsets of all accesses at
// `indices`, before swizzling and apart from the part of `lane`, along which the elements are consecutive; 1
// where they are not.
int64_t ConsecutiveElements(const Layout& layout, const std::vector<Expr>& indices, const VarNode* lane,
                            int64_t most);

}  // namespace mycc
