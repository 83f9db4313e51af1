// Builds the naive loop nest of a workload: a block under its own loops for each stage, in order.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/ir/function.h"

namespace mycc {
namespace {

// The stage itself. A reduction over an empty axis becomes a constant, because its block would never run. The
// language has no argmax over an empty axis.
Stage WithoutEmptyReduction(const Stage& stage) {
  if (std::ranges::count(stage.reduce_axes, 0, &VarNode::extent) == 0) return stage;
  return Stage{
      stage.output, stage.axes, ReduceOp::kNone, {}, ReduceIdentity(stage.reduce, stage.output->dtype)};
}

// The buffer of the best values of an argmax or argmin; null for other stages.
Buffer BestValuesOf(const Stage& stage) {
  if (stage.reduce != ReduceOp::kArgMax && stage.reduce != ReduceOp::kArgMin) return nullptr;
  return MakeBuffer(absl::StrCat(stage.output->name, ".best"), stage.value->dtype, stage.output->shape);
}

}  // namespace

Stmt BuildStage(const Stage& stage, const Buffer& best) {
  auto block = std::make_shared<Block>();
  block->name = stage.output->name;
  block->out = stage.output;
  block->value = stage.value;
  if (best == nullptr) {
    block->reduce = stage.reduce;
  } else {
    block->reduce = ArgExtremum(stage.reduce, stage.value->dtype);
    block->value = MakeCast(stage.output->dtype, VarRef(stage.reduce_axes[0]));
    block->more = {{best, stage.value}};
  }
  block->init = stage.reduce != ReduceOp::kNone;
  std::vector<LoopSpec> loops;
  const auto add_axis = [&](const Var& axis, bool reduce) {
    loops.push_back({MakeVar(absl::StrCat(block->name, ".", axis->name), axis->extent)});
    block->iters.push_back(IterVar{axis, reduce, VarRef(loops.back().var)});
  };
  for (const Var& axis : stage.axes) {
    add_axis(axis, false);
    block->indices.push_back(VarRef(axis));
  }
  for (const Var& axis : stage.reduce_axes) add_axis(axis, true);
  return MakeNest(loops, std::move(block));
}

Function BuildNaive(const Workload& workload) {
  Function function;
  function.name = workload.name;
  for (const Argument& input : workload.inputs) {
    function.params.push_back(Param{input.tensor, input.is_const ? ParamKind::kConst : ParamKind::kInput});
  }
  for (const Buffer& output : workload.outputs) function.params.push_back(Param{output, ParamKind::kOutput});
  const auto is_output = [&](const Buffer& buffer) {
    return std::ranges::find(workload.outputs, buffer) != workload.outputs.end();
  };

  std::vector<Stmt> nests;
  std::vector<Buffer> allocated;
  for (const Stage& declared : workload.stages) {
    const Stage stage = WithoutEmptyReduction(declared);
    const Buffer best = BestValuesOf(stage);
    if (best) allocated.push_back(best);
    if (!is_output(stage.output)) allocated.push_back(stage.output);
    nests.push_back(BuildStage(stage, best));
  }
  function.body = InAllocs(allocated, MakeSeq(std::move(nests)));
  return function;
}

}  // namespace mycc
