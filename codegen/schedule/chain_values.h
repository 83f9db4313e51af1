// The values that the members of a chain (codegen/workload/stream_chain.h) compute in one part of its axis,
// and what makes the sums of parts those of the whole. The first half of split_chain.h: it knows nothing of
// how long parts are, or of the axes of their tensors. For split_chain.cc only. Pure.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/workload/stream_chain.h"

namespace mycc {

// Stages are numbered as in the workload.
struct ChainValues {
  std::set<int> members;  // of the chain, without its epilogue
  // The values of tiles, of reductions and of the sum over their own axes: functions of the scores and of
  // results of reductions, without the factors that leave sums. The scores themselves have none.
  std::map<int, Expr> values;
  std::map<int, Expr> inlined;  // the values of members that are computed where they are read

  // For each sum: the reductions R, whose results of a part differ from those of the whole, with the exponent
  // c of exp(c * R) in the sum's terms, and the factors that multiply the merged sum.
  std::map<int, std::vector<std::pair<int, double>>> corrections;
  std::map<int, std::vector<Expr>> factors;
};

// FailedPrecondition when a member depends on a reduction in a way that has no known correction; the error
// names both.
absl::StatusOr<ChainValues> FindChainValues(const Workload& workload, const StreamChain& chain);

}  // namespace mycc
