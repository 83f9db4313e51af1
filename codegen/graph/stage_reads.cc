#include "codegen/graph/stage_reads.h"

#include <algorithm>
#include <unordered_set>

namespace mycc {
namespace {

bool IsOwnAxis(const Expr& index, const Var& axis) {
  if (index->op == Op::kVar) return index->var == axis;
  return axis->extent == 1 && IsConstInt(index, int64_t{0});
}

// Whether the load is at plain axes alone, and at every axis of more than one value.
bool CoversAllAxes(const Stage& stage, const ExprNode& load) {
  VarSet seen;
  for (const Expr& index : load.args) {
    if (IsConstInt(index, int64_t{0})) continue;
    if (index->op != Op::kVar || !seen.insert(index->var.get()).second) return false;
  }
  const auto covered = [&](const Var& axis) { return axis->extent == 1 || seen.count(axis.get()) > 0; };
  return std::ranges::all_of(stage.axes, covered) && std::ranges::all_of(stage.reduce_axes, covered);
}

}  // namespace

StageKind KindOf(const Stage& stage) {
  if (stage.reduce == ReduceOp::kNone) return StageKind::kInjective;
  bool covers = false, plain = true;
  Visit(stage.value, [&](const ExprNode& e) {
    if (e.op != Op::kLoad) return;
    covers |= CoversAllAxes(stage, e);
    for (const Expr& index : e.args) plain &= index->op == Op::kVar || index->op == Op::kConst;
  });
  return covers && plain ? StageKind::kRows : StageKind::kHeavy;
}

bool ReadsElementwise(const Stage& stage, const Buffer& tensor) {
  if (tensor->shape != stage.output->shape) return false;
  bool all = true;
  Visit(stage.value, [&](const ExprNode& e) {
    if (e.op != Op::kLoad || e.buffer != tensor) return;
    for (size_t i = 0; i < e.args.size(); ++i) all &= IsOwnAxis(e.args[i], stage.axes[i]);
  });
  return all;
}

std::vector<int> PermutationOf(const Stage& stage) {
  const Expr& load = stage.value;
  if (stage.reduce != ReduceOp::kNone || load->op != Op::kLoad) return {};
  if (load->args.size() != stage.axes.size()) return {};
  std::vector<int> permutation(stage.axes.size(), -1);
  for (size_t dim = 0; dim < load->args.size(); ++dim) {
    const Expr& index = load->args[dim];
    if (index->op != Op::kVar) return {};
    const auto axis = std::ranges::find(stage.axes, index->var) - stage.axes.begin();
    if (permutation[axis] >= 0 || load->buffer->shape[dim] != stage.output->shape[axis]) return {};
    permutation[axis] = static_cast<int>(dim);
  }
  return permutation;
}

}  // namespace mycc
