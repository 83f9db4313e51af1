#include "codegen/schedule/stages.h"

#include <string>
#include <utility>

#include "base/status.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/schedule/moves.h"

namespace mycc {
namespace {

absl::StatusOr<Stage> StageOf(const Block& block) {
  if (block.reduce.tuple() != nullptr) {
    return Refusal(block.name, " reduces tuples (", block.reduce.name(), "), and is no stage of one value");
  }
  if (block.init != (block.reduce != ReduceOp::kNone))
    return Refusal(block.name, " goes on with a reduction that another block began, and is no stage");
  Stage stage{block.out, {}, block.reduce.op(), {}, block.value};
  for (const IterVar& iter : block.iters) (iter.reduce ? stage.reduce_axes : stage.axes).push_back(iter.var);
  return stage;
}

// The stage of an argmax or argmin too, which BuildNaive made a reduction of (position, value).
absl::StatusOr<Stage> AnyStageOf(const Block& block) {
  for (const ReduceOp op : {ReduceOp::kArgMax, ReduceOp::kArgMin}) {
    if (block.reduce.tuple() == nullptr || block.reduce.name() != ReduceOpName(op)) continue;
    Block of_values = block;
    of_values.reduce = op;
    of_values.value = block.more.front().value;
    return StageOf(of_values);
  }
  return StageOf(block);
}

// Whether the tensor is a const input, or computed only from const inputs.
bool IsKnownAhead(const Function& function, const Buffer& buffer) {
  for (const Param& param : function.params) {
    if (param.buffer == buffer) return param.kind == ParamKind::kConst;
  }
  const Block* writer = WriterOf(function, buffer);
  bool known = writer != nullptr;
  Visit(known ? writer->value : IntConst(0), [&](const ExprNode& e) {
    if (e.op == Op::kLoad) known = known && IsKnownAhead(function, e.buffer);
  });
  return known;
}

}  // namespace

absl::StatusOr<Stage> StageOf(const Function& function, const std::string& block) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, block));
  MYCC_RETURN_IF_ERROR(CheckNaive(path));
  return StageOf(path.block());
}

absl::StatusOr<Workload> WorkloadOf(const Function& function) {
  Workload workload;
  workload.name = function.name;
  for (const Param& param : function.params) {
    if (param.kind == ParamKind::kOutput) {
      workload.outputs.push_back(param.buffer);
    } else {
      workload.inputs.push_back({param.buffer, param.kind == ParamKind::kConst});
    }
  }
  for (const Block* block : BlocksUnder(function.body)) {
    MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, block->name));
    MYCC_RETURN_IF_ERROR(CheckNaive(path));
    MYCC_ASSIGN_OR_RETURN(Stage stage, AnyStageOf(*block));
    workload.stages.push_back(std::move(stage));
  }
  return workload;
}

absl::StatusOr<Function> ReplaceByStages(const Function& function, const std::string& block,
                                         const std::vector<Stage>& stages) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, block));
  MYCC_RETURN_IF_ERROR(CheckNaive(path));
  MYCC_RETURN_IF_ERROR(CheckOnlyWriter(function, path.block()));
  std::vector<Buffer> made;
  for (size_t s = 0; s + 1 < stages.size(); ++s) {
    made.push_back(stages[s].output);
    const std::string& name = made.back()->name;
    if (FreshName(function, name) != name) return Refusal("the name ", name, " is taken");
  }
  std::vector<Stmt> nests;
  nests.reserve(stages.size());
  for (const Stage& stage : stages) nests.push_back(BuildStage(stage));
  return WithBody(function, InAllocs(made, ReplaceAt(NestPath(path), MakeSeq(std::move(nests)))));
}

absl::StatusOr<Function> PackedIfKnown(const Function& function, const std::string& tensor) {
  MYCC_ASSIGN_OR_RETURN(const Buffer buffer, FindAllocated(function, tensor));
  if (!IsKnownAhead(function, buffer)) return function;
  const Buffer packed = MakeBuffer(buffer->name, buffer->dtype, buffer->shape, Scope::kPacked);
  return WithBody(function, ReplaceBuffer(function.body, buffer, packed));
}

}  // namespace mycc
