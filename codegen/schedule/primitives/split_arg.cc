// split_arg(B): splits an argmax or argmin into two reductions: the best value, and the first position where
// it occurs. Unlike the original, these can be divided among threads and by rfactor.
//
//   for r: B: t1[a], t1.best[a] argmax= f(a, r)
//     ->
//   for r: t1.best: t1.best[a] max= f(a, r)
//   for r: B: t1[a] min= select(f(a, r) is t1.best[a], r, highest)
//
// A NaN is better than any number; the first NaN is found.
#include "base/status.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

bool IsLargest(const Block& block) { return block.reduce.name() == ReduceOpName(ReduceOp::kArgMax); }

Stmt MakeBest(const Block& block) {
  Stage best{block.more[0].buffer, {}, IsLargest(block) ? ReduceOp::kMax : ReduceOp::kMin, {}, nullptr};
  VarMap own;
  for (const IterVar& iter : block.iters) {
    const Var axis = MakeVar(iter.var->name, iter.var->extent);
    (iter.reduce ? best.reduce_axes : best.axes).push_back(axis);
    own[iter.var.get()] = VarRef(axis);
  }
  best.value = Substitute(block.more[0].value, own);
  return BuildStage(best);
}

std::shared_ptr<Block> MakePosition(const Block& block) {
  const Expr& value = block.more[0].value;
  const Expr best = Load(block.more[0].buffer, block.indices);
  Expr found = MakeBinary(Op::kEq, value, best);
  if (IsFloat(best->dtype)) {
    const auto is_nan = [](const Expr& e) { return MakeBinary(Op::kNe, e, e); };
    found = MakeBinary(Op::kOr, found, MakeBinary(Op::kAnd, is_nan(value), is_nan(best)));
  }
  auto position = std::make_shared<Block>(block);
  position->more.clear();
  position->reduce = ReduceOp::kMin;
  position->value = MakeSelect(found, block.value, ReduceIdentity(ReduceOp::kMin, block.out->dtype));
  return position;
}

}  // namespace

absl::StatusOr<Function> SplitArg(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  const Block& block = path.block();
  if (!IsLargest(block) && block.reduce.name() != ReduceOpName(ReduceOp::kArgMin))
    return Refusal(block.name, " is not an argmax or argmin");
  MYCC_RETURN_IF_ERROR(CheckNaive(path));
  const Path nest = NestPath(path);
  const auto position = MakePosition(block);
  const Stmt second = ReplaceStmt(nest.target(), &block, position);
  return WithBody(function, ReplaceAt(nest, MakeSeq({MakeBest(block), second})));
}

}  // namespace mycc
