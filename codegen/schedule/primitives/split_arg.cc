// split_arg(B): splits an argmax or argmin into two reductions: the best value, and the first position where
// it occurs. Unlike the original, these can be divided among threads and by rfactor.
//
//   for r: B: t1[a], t1.best[a] argmax= f(a, r)
//     ->
//   for r: t1.best: t1.best[a] max= f(a, r)
//   for r: B: t1[a] min= select(f(a, r) is t1.best[a], r, highest)
//
// A NaN is better than any number; the first NaN is found.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

Stmt MakeBest(const Block& block) {
  auto best = std::make_shared<Block>();
  best->name = block.arg_value->name;
  best->out = block.arg_value;
  best->reduce = block.reduce == ReduceOp::kArgMax ? ReduceOp::kMax : ReduceOp::kMin;
  best->init = true;
  std::vector<LoopSpec> loops;
  VarMap renamed;
  for (const IterVar& iter : block.iters) {
    loops.push_back({MakeVar(absl::StrCat(best->name, ".", iter.var->name), iter.var->extent)});
    const Var axis = MakeVar(iter.var->name, iter.var->extent);
    best->iters.push_back({axis, iter.reduce, VarRef(loops.back().var)});
    renamed[iter.var.get()] = VarRef(axis);
  }
  for (const Expr& index : block.indices) best->indices.push_back(Substitute(index, renamed));
  best->value = Substitute(block.value, renamed);
  return MakeNest(loops, std::move(best));
}

std::shared_ptr<Block> MakePosition(const Block& block) {
  const Expr best = Load(block.arg_value, block.indices);
  Expr found = MakeBinary(Op::kEq, block.value, best);
  if (IsFloat(best->dtype)) {
    const auto is_nan = [](const Expr& e) { return MakeBinary(Op::kNe, e, e); };
    found = MakeBinary(Op::kOr, found, MakeBinary(Op::kAnd, is_nan(block.value), is_nan(best)));
  }
  Expr place;
  for (const IterVar& iter : block.iters) {
    if (iter.reduce) place = MakeCast(block.out->dtype, VarRef(iter.var));
  }
  auto position = std::make_shared<Block>(block);
  position->arg_value = nullptr;
  position->reduce = ReduceOp::kMin;
  position->value = MakeSelect(found, place, ReduceIdentity(ReduceOp::kMin, block.out->dtype));
  return position;
}

}  // namespace

absl::StatusOr<Function> SplitArg(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  const Block& block = path.block();
  if (!block.arg_value)
    return absl::FailedPreconditionError(absl::StrCat(block.name, " is not an argmax or argmin"));
  MYCC_RETURN_IF_ERROR(CheckNaive(path));
  Path nest = path;
  nest.nodes.resize(nest.nodes.size() - block.iters.size());
  const auto position = MakePosition(block);
  const Stmt second = RewriteStmts(nest.target(), [&](const Stmt& stmt) -> Stmt {
    return stmt.get() == &block ? Stmt(position) : nullptr;
  });
  return WithBody(function, ReplaceAt(nest, MakeSeq({MakeBest(block), second})));
}

}  // namespace mycc
