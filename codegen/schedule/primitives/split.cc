// split(l, [4, 8]): turns a loop into a nest with these inner extents; the outermost extent follows from the
// loop's.
//
//   for l in 100:            for l.0 in 4:
//     B[i = l]        ->       for l.1 in 4:
//                                for l.2 in 8:
//                                  B[i = l.0*32 + l.1*8 + l.2]     (not executed where i >= 100)
//
// Factors need not divide the extent. When a block's iteration domain does not exclude the extra iterations,
// the block gets a guard: another iteration variable over the loop's extent.
//
// split_axis(l, 4): splits the axis of loop l into two axes: the group, and the place in the group. Split
// changes only loops; this primitive also rewrites the block's reads, so that an operand that depends only on
// the group stays independent of the place under later tiling.
//
//   for k in 12:                                     for k.0 in 3: for k.1 in 4:
//     for c: B: t2[k] += x[k//4*8 + c] * w[k, c]  ->   for c: B: t2[k.0*4 + k.1] +=
//                                                               x[k.0*8 + c] * w[k.0*4 + k.1, c]
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/integers.h"
#include "codegen/ir/block_guards.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

absl::Status CheckPlain(const For& loop) {
  if (loop.loop_kind == LoopKind::kSerial && loop.marks.instruction.empty()) return absl::OkStatus();
  return Refusal("the loop is ", LoopKindName(loop.loop_kind), "; only serial loops are split");
}

// True when an iteration variable's domain already excludes every value of the loop beyond its extent.
bool DomainCovers(const Block& block, const Var& loop) {
  return std::ranges::any_of(block.iters, [&](const IterVar& iter) {
    return iter.binding->op == Op::kVar && iter.binding->var == loop && iter.var->extent == loop->extent;
  });
}

Stmt GuardBlocks(const Stmt& body, const Var& loop) {
  return RewriteEach<Block>(body, [&](const Block& block) -> Stmt {
    if (DomainCovers(block, loop)) return nullptr;
    return Changed(block, [&](Block* guarded) { AddGuard(guarded, loop->extent, VarRef(loop)); });
  });
}

// The block's iteration variable that is bound to exactly this loop, which no other variable uses.
absl::StatusOr<const IterVar*> AxisOf(const Block& block, const For& loop) {
  const IterVar* axis = nullptr;
  int users = 0;
  for (const IterVar& iter : block.iters) {
    if (!UsesVar(iter.binding, loop.var.get())) continue;
    ++users;
    if (iter.binding->op == Op::kVar && iter.var->extent == loop.var->extent) axis = &iter;
  }
  if (axis == nullptr || users > 1 || axis->reduce || IsGuard(block, *axis)) {
    return Refusal("loop ", loop.var->name, " is not that of one axis of ", block.name);
  }
  return axis;
}

std::shared_ptr<Block> WithSplitAxis(const Block& block, const IterVar& axis, const Var& outer_loop,
                                     const Var& inner_loop) {
  const Var outer = MakeVar(absl::StrCat(axis.var->name, ".0"), outer_loop->extent);
  const Var inner = MakeVar(absl::StrCat(axis.var->name, ".1"), inner_loop->extent);
  const VarMap map = {{axis.var.get(), VarRef(outer) * inner->extent + VarRef(inner)}};
  auto split = std::make_shared<Block>(block);
  const auto group = split->iters.begin() + (&axis - block.iters.data());
  *group = {outer, false, VarRef(outer_loop)};
  split->iters.insert(group + 1, {inner, false, VarRef(inner_loop)});
  for (Expr& index : split->indices) index = Simplify(Substitute(index, map));
  split->MapValues([&](const Expr& value) { return Simplify(Substitute(value, map)); });
  return split;
}

}  // namespace

absl::StatusOr<Function> Split(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  const auto& factors = args.Ints(1);
  if (factors.empty()) return Refusal("expected at least one inner factor");
  int64_t inner = 1;
  for (int64_t factor : factors) {
    if (factor < 1 || factor > (int64_t{1} << 40) / inner) {
      return Refusal("factor ", factor, " is not a positive tile size");
    }
    inner *= factor;
  }
  MYCC_RETURN_IF_ERROR(CheckPlain(loop));
  const int64_t extent = loop.var->extent;
  const int64_t outer = CeilDiv(extent, inner);

  std::vector<LoopSpec> nest;
  Expr value;
  int64_t scale = inner;
  for (size_t i = 0; i <= factors.size(); ++i) {
    const int64_t part = i == 0 ? outer : factors[i - 1];
    if (i > 0) scale /= factors[i - 1];
    Var var = MakeVar(absl::StrCat(loop.var->name, ".", i), part);
    const Expr term = part == 1 ? IntConst(0) : VarRef(var) * scale;
    value = value ? value + term : term;
    nest.push_back({std::move(var)});
  }
  const Stmt body = outer * inner > extent ? GuardBlocks(loop.body, loop.var) : loop.body;
  return WithBody(function, ReplaceAt(path, MakeNest(nest, SubstituteVars(body, {{loop.var.get(), value}}))));
}

absl::StatusOr<Function> SplitAxis(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  MYCC_RETURN_IF_ERROR(CheckPlain(loop));
  const std::vector<const Block*> blocks = BlocksUnder(loop.body);
  if (blocks.size() != 1) return Refusal("the loop holds several blocks");
  const Block& block = *blocks[0];
  MYCC_ASSIGN_OR_RETURN(const IterVar* axis, AxisOf(block, loop));
  const int64_t factor = args.Int(1), extent = loop.var->extent;
  if (factor < 1 || extent % factor != 0) return Refusal("factor ", factor, " does not divide ", extent);
  const Var outer = MakeVar(absl::StrCat(loop.var->name, ".0"), extent / factor);
  const Var inner = MakeVar(absl::StrCat(loop.var->name, ".1"), factor);
  const auto split = WithSplitAxis(block, *axis, outer, inner);
  const Stmt body = ReplaceStmt(loop.body, &block, split);
  // Tensors that were moved into the loop are indexed by the loop, not by the axis.
  const VarMap moved = {{loop.var.get(), VarRef(outer) * factor + VarRef(inner)}};
  return WithBody(function, ReplaceAt(path, MakeNest({{outer}, {inner}}, SubstituteVars(body, moved))));
}

}  // namespace mycc
