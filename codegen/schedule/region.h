// Computes the boxes of a buffer that statements access; primitives size their copies by them. Pure
// functions.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/function.h"

namespace mycc {

// One dimension of a box: [base, base + extent), base over the loops outside. `whole` boxes are [0, shape).
struct DimRegion {
  Expr base;
  int64_t extent;
  bool whole;
};

// An access: index expressions with the block's bindings substituted, over loop variables.
using Access = std::vector<Expr>;

// Every read of `buffer` by blocks under `stmt`.
std::vector<Access> ReadsUnder(const Stmt& stmt, const Buffer& buffer);
// A block's write.
Access WriteOf(const Block& block);

// The smallest box that covers all accesses while the `inner` variables vary and the others are fixed. A
// dimension is taken whole when its index depends on data or is not linear in the inner variables, or when
// its bases differ by more than a constant.
std::vector<DimRegion> CoveringBox(const std::vector<Access>& accesses, const VarSet& inner,
                                   const std::vector<int64_t>& shape);

}  // namespace mycc
