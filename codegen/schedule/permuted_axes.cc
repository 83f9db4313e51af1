#include "codegen/schedule/permuted_axes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace mycc {

absl::StatusOr<std::vector<Stage>> PermutedStages(const Stage& stage, const std::vector<int64_t>& order) {
  const auto rank = static_cast<int64_t>(stage.axes.size());
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool is_permutation = static_cast<int64_t>(order.size()) == rank;
  for (int64_t d = 0; is_permutation && d < rank; ++d) is_permutation = sorted[d] == d;
  if (!is_permutation) {
    return Refusal("[", absl::StrJoin(order, ", "), "] is no order of the ", rank, " dimensions of ",
                   stage.output->name);
  }
  Stage permuted = stage, copy = stage;
  std::vector<int64_t> shape;
  std::vector<Expr> index(order.size());
  VarMap own;
  for (size_t d = 0; d < order.size(); ++d) {
    const Var& old = stage.axes[order[d]];
    permuted.axes[d] = MakeVar(absl::StrCat("a", d), old->extent);
    own[old.get()] = VarRef(permuted.axes[d]);
    index[d] = VarRef(old);
    shape.push_back(old->extent);
  }
  permuted.output = MakeBuffer(absl::StrCat(stage.output->name, ".p"), stage.output->dtype, std::move(shape));
  permuted.value = Substitute(stage.value, own);
  copy.reduce = ReduceOp::kNone;
  copy.reduce_axes.clear();
  copy.value = Load(permuted.output, std::move(index));
  return std::vector<Stage>{std::move(permuted), std::move(copy)};
}

}  // namespace mycc
