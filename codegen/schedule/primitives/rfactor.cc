// rfactor(B.r0, 16): splits a reduction into 16 independent partial reductions, for vector lanes or threads,
// and a reduction of their results.
//
//   for a: for r in 100:          for a: for r in 7: for v in 16:
//     B: t1[a] += f(a, r)    ->     B.rf: B.rf[a, v] += f(a, r*16 + v)       (not executed beyond 100)
//                                 for a: for v in 16:
//                                   B: t1[a] += B.rf[a, v]
//
// rfactor_runs(B.r0, 16): the same, with a partial reduction for each run of 16 consecutive terms, for thread
// blocks or for the launches of a split reduction.
//
//   for v in 7: for r in 16: B.rf: B.rf[a, v] += f(a, v*16 + r)
//
// split_arg(B): splits an argmax or argmin into two reductions: the best value, and the first position where
// it occurs. Unlike the original, these can be divided among threads and by rfactor.
//
//   for r: B: t1[a], t1.best[a] argmax= f(a, r)
//     ->
//   for r: t1.best: t1.best[a] max= f(a, r)
//   for r: B: t1[a] min= select(f(a, r) is t1.best[a], r, highest)
//
// A NaN is better than any number; the first NaN is found.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/integers.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

// The name of the lane loop: "v", or "v2", "v3", ... when B comes from an earlier rfactor and has lanes
// already.
std::string LaneName(const Block& block) {
  return FirstFree("v", [&](const std::string& name) {
    return std::ranges::any_of(block.iters, [&](const IterVar& iter) { return iter.var->name == name; });
  });
}

// `extent` terms in `lanes` partial results of `steps` terms each: term number step * step_stride + lane *
// lane_stride.
struct Factoring {
  int64_t extent, lanes, steps, lane_stride, step_stride;
};

// The partial reduction: B's axes, its other reduction axes, the step along the factored one, and the lane.
Stmt MakePartial(const Block& block, const IterVar& factored, const Factoring& f, const std::string& name,
                 const std::vector<Buffer>& partial) {
  auto rf = std::make_shared<Block>(block);
  rf->name = name;
  rf->iters.clear();
  rf->init = true;
  rf->out = partial[0];
  for (size_t i = 0; i < rf->more.size(); ++i) rf->more[i].buffer = partial[i + 1];
  VarMap renamed;
  std::vector<LoopSpec> loops;
  const auto add = [&](const std::string& axis, int64_t extent, bool reduce) {
    rf->iters.push_back({MakeVar(axis, extent), reduce, nullptr});
    loops.push_back(LoopOver(nullptr, name, &rf->iters.back()));
    return VarRef(rf->iters.back().var);
  };
  for (const IterVar& iter : block.iters) {
    if (&iter != &factored) renamed[iter.var.get()] = add(iter.var->name, iter.var->extent, iter.reduce);
  }
  add(factored.var->name, f.steps, true);
  const Expr lane = add(LaneName(block), f.lanes, false);
  const Expr term =
      VarRef(loops[loops.size() - 2].var) * f.step_stride + VarRef(loops.back().var) * f.lane_stride;
  const Var whole = AddGuard(rf.get(), f.extent, term);
  renamed[factored.var.get()] = VarRef(whole);
  rf->indices = Substitute(block.indices, renamed);
  rf->indices.push_back(lane);
  rf->MapValues([&](const Expr& value) { return Substitute(value, renamed); });
  return MakeNest(loops, std::move(rf));
}

Stmt MakeFinal(const Block& block, int64_t lanes, const std::vector<Buffer>& partial) {
  auto final = std::make_shared<Block>(block);
  std::vector<LoopSpec> loops;
  std::erase_if(final->iters, [](const IterVar& iter) { return iter.reduce; });
  const Var lane = MakeVar(LaneName(block), lanes);
  final->iters.push_back({lane, /*reduce=*/true, nullptr});
  for (IterVar& iter : final->iters) loops.push_back(LoopOver(nullptr, block.name, &iter));
  std::vector<Expr> index = block.indices;
  index.push_back(VarRef(lane));
  final->value = Load(partial[0], index);
  for (size_t i = 0; i < final->more.size(); ++i) final->more[i].value = Load(partial[i + 1], index);
  return MakeNest(loops, std::move(final));
}

absl::StatusOr<Function> Factor(const Function& function, const StepArgs& args, bool runs) {
  MYCC_ASSIGN_OR_RETURN(const Path loop_path, FindLoop(function, args.Name(0)));
  const std::vector<const Block*> blocks = BlocksUnder(loop_path.target());
  if (blocks.size() != 1) return Refusal("the loop holds several blocks");
  const Block& block = *blocks[0];
  MYCC_ASSIGN_OR_RETURN(const Path block_path, FindBlock(function, block.name));
  MYCC_RETURN_IF_ERROR(CheckNaive(block_path));
  const auto factored = std::ranges::find_if(block.iters, [&](const IterVar& iter) {
    return iter.reduce && iter.binding->var == loop_path.loop().var;
  });
  if (factored == block.iters.end()) return Refusal("the loop carries no reduction");
  const int64_t factor = args.Int(1), extent = factored->var->extent;
  if (factor < 2 || factor > extent) {
    return Refusal("factor ", factor, " is not between 2 and the extent ", extent);
  }
  const int64_t rest = CeilDiv(extent, factor);
  const Factoring factoring =
      runs ? Factoring{extent, rest, factor, factor, 1} : Factoring{extent, factor, rest, 1, factor};
  const std::string name = FreshName(function, absl::StrCat(block.name, ".rf"));
  std::vector<int64_t> shape = block.out->shape;
  shape.push_back(factoring.lanes);
  std::vector<Buffer> partial = {MakeBuffer(name, block.out->dtype, shape, Scope::kGlobal)};
  for (const Accumulator& accumulator : block.more) {
    const std::string part = FreshName(function, absl::StrCat(accumulator.buffer->name, ".rf"));
    partial.push_back(MakeBuffer(part, accumulator.buffer->dtype, shape, Scope::kGlobal));
  }

  const Stmt both = MakeSeq(
      {MakePartial(block, *factored, factoring, name, partial), MakeFinal(block, factoring.lanes, partial)});
  return WithBody(function, InAllocs(partial, ReplaceAt(NestPath(block_path), both)));
}

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

absl::StatusOr<Function> RFactor(const Function& function, const Target&, const StepArgs& args) {
  return Factor(function, args, /*runs=*/false);
}

absl::StatusOr<Function> RFactorRuns(const Function& function, const Target&, const StepArgs& args) {
  return Factor(function, args, /*runs=*/true);
}

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
