// pad(B, d, extent): the tensor that block B computes grows to `extent` elements along dimension d; what is
// beyond its old end is zero. Rows become whole vectors, and a reduction over the tensor may run on into the
// zeros (see stage).
//
//   for i in 5: for c in 3: B: t1[i, c] = f(i, c)
//     ->
//   for i in 5: for c in 4: B: t1[i, c] = c < 3 ? f(i, c) : 0
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

constexpr int64_t kMostGrowth = 16;  // times the old extent

absl::Status CheckPaddable(const Function& function, const Path& path, int64_t dim, int64_t extent) {
  const Block& block = path.block();
  MYCC_RETURN_IF_ERROR(CheckNaive(path));
  MYCC_RETURN_IF_ERROR(CheckOnlyWriter(function, block));
  if (block.reduce != ReduceOp::kNone)
    return absl::FailedPreconditionError(absl::StrCat(block.name, " is a reduction"));
  for (const Param& param : function.params) {
    if (param.buffer == block.out)
      return absl::FailedPreconditionError(
          absl::StrCat(block.out->name, " is an output; its shape is the caller's"));
  }
  if (dim < 0 || dim >= block.out->rank())
    return absl::FailedPreconditionError(
        absl::StrCat("dimension ", dim, "; ", block.out->name, " has ", block.out->rank()));
  const int64_t old = block.out->shape[dim];
  if (extent <= old || extent > kMostGrowth * old) {
    return absl::FailedPreconditionError(
        absl::StrCat("extent ", extent, "; expected more than ", old, " and at most ", kMostGrowth * old));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Function> Pad(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  const int64_t dim = args.Int(1), extent = args.Int(2);
  MYCC_RETURN_IF_ERROR(CheckPaddable(function, path, dim, extent));
  const Block& block = path.block();
  BufferNode padded = *block.out;
  padded.shape[dim] = extent;
  const Buffer buffer = std::make_shared<BufferNode>(std::move(padded));

  // The naive nest has one loop for each iteration variable, and one variable for each dimension.
  const VarNode* axis = block.indices[dim]->var.get();
  auto grown = std::make_shared<Block>(block);
  std::vector<LoopSpec> loops;
  for (const For* loop : LoopsOn(path)) loops.push_back({loop->var, loop->loop_kind});
  for (IterVar& iter : grown->iters) {
    if (iter.var.get() != axis) continue;
    const Expr inside = MakeBinary(Op::kLt, VarRef(iter.var), IntConst(iter.var->extent));
    const Var var = MakeVar(iter.var->name, extent);
    const Expr zero = IsFloat(buffer->dtype) ? FloatConst(0, buffer->dtype) : IntConst(0, buffer->dtype);
    const VarMap map = {{axis, VarRef(var)}};
    grown->value = MakeSelect(Substitute(inside, map), Substitute(block.value, map), zero);
    grown->indices[dim] = VarRef(var);
    for (LoopSpec& loop : loops) {
      if (loop.var != iter.binding->var) continue;
      loop.var = MakeVar(loop.var->name, extent);
      iter.binding = VarRef(loop.var);
    }
    iter.var = var;
    break;
  }
  // The whole nest is replaced: its outermost loop stands first on the path that is a loop.
  Path nest = path;
  while (nest.nodes.size() > 1 && nest.nodes[nest.nodes.size() - 2]->kind == StmtKind::kFor)
    nest.nodes.pop_back();
  const Function replaced = WithBody(function, ReplaceAt(nest, MakeNest(loops, grown)));
  return WithBody(replaced, ReplaceBuffer(replaced.body, block.out, buffer));
}

}  // namespace mycc
