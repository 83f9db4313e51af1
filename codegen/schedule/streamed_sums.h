// The sums under a loop that use the result of a reduction over the same axis: how each depends on it, and
// the part of the axis that one iteration covers. For stream_reduction. Pure.
#pragma once

#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/schedule/correction.h"
#include "codegen/schedule/moves.h"

namespace mycc {

// A sum whose accumulator lives outside of the loop that carries its reduction.
struct StreamedSum {
  const Block* block;
  std::vector<const For*> loops;  // under the loop, outermost first
  std::vector<Var> tile;          // for each dimension of the accumulator, its loop; null for one element
  Dependence dependence;          // over the block's iteration variables
};

struct StreamedSums {
  std::vector<StreamedSum> sums;
  DimRegion part;       // of the axis, in one iteration
  double exponent = 0;  // sums that depend by exp(exponent * R) are corrected; 0: there are none
  // The values of blocks under the loop without the factor that leaves their sums.
  std::unordered_map<const Block*, Expr> without_factor;
};

// FailedPrecondition when a sum has no accumulator, another axis, or no known correction. `reduction` is no
// part of the function any more.
absl::StatusOr<StreamedSums> FindStreamedSums(const Function& function, const Block& reduction,
                                              const Path& loop);

}  // namespace mycc
