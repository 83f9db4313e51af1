// Computes the boxes of a buffer that statements touch, from which primitives size their copies.
#pragma once

#include <unordered_set>
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

// The smallest box that covers all accesses while `inner` variables run and the others stand still. A
// dimension whose index depends on data or is not linear in the inner variables, or whose bases differ by
// more than a constant, is taken whole.
std::vector<DimRegion> CoveringBox(const std::vector<Access>& accesses,
                                   const std::unordered_set<const VarNode*>& inner,
                                   const std::vector<int64_t>& shape);

}  // namespace mycc
