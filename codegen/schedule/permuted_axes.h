// Gives a stage's tensor its dimensions in another order, and a copy that has them as before. For the
// permute_axes primitive and the rules. Pure.
//
//   t2[i,j] = sum[k](..)     ->     t2.p[j,i] = sum[k](..)
//                                   t2[i,j] = t2.p[j,i]
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/workload/workload.h"

namespace mycc {

// Dimension d of the new tensor is dimension order[d] of the old one. FailedPrecondition unless `order` has
// each dimension once.
absl::StatusOr<std::vector<Stage>> PermutedStages(const Stage& stage, const std::vector<int64_t>& order);

}  // namespace mycc
