// Builds the naive loop nest of a workload: a block under its own loops for each stage, in order.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/ir/function.h"

namespace mycc {
namespace {

bool IsArg(ReduceOp op) { return op == ReduceOp::kArgMax || op == ReduceOp::kArgMin; }

bool IsEmpty(const std::vector<Var>& axes) {
  return std::ranges::any_of(axes, [](const Var& axis) { return axis->extent == 0; });
}

// The stage itself. A reduction over an empty axis becomes a constant, because its block would never run. The
// language has no argmax over an empty axis.
Stage WithoutEmptyReduction(const Stage& stage) {
  if (!IsEmpty(stage.reduce_axes)) return stage;
  return Stage{
      stage.output, stage.axes, ReduceOp::kNone, {}, ReduceIdentity(stage.reduce, stage.output->dtype)};
}

}  // namespace

Buffer BestValuesOf(const Stage& stage) {
  if (!IsArg(stage.reduce)) return nullptr;
  return MakeBuffer(absl::StrCat(stage.output->name, ".best"), stage.value->dtype, stage.output->shape);
}

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
  std::vector<Var> loops;
  const auto add_axis = [&](const Var& axis, bool reduce) {
    loops.push_back(MakeVar(absl::StrCat(block->name, ".", axis->name), axis->extent));
    block->iters.push_back(IterVar{axis, reduce, VarRef(loops.back())});
  };
  for (const Var& axis : stage.axes) {
    add_axis(axis, false);
    block->indices.push_back(VarRef(axis));
  }
  for (const Var& axis : stage.reduce_axes) add_axis(axis, true);
  Stmt nest = std::move(block);
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    nest = std::make_shared<For>(*loop, IntConst((*loop)->extent), LoopKind::kSerial, std::move(nest));
  }
  return nest;
}

Function BuildNaive(const Workload& workload) {
  Function function;
  function.name = workload.name;
  for (const Argument& input : workload.inputs) {
    function.params.push_back(Param{input.tensor, input.is_const ? ParamKind::kConst : ParamKind::kInput});
  }
  for (const Buffer& output : workload.outputs) function.params.push_back(Param{output, ParamKind::kOutput});
  const auto is_output = [&](const Buffer& buffer) {
    for (const Buffer& output : workload.outputs) {
      if (output == buffer) return true;
    }
    return false;
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
