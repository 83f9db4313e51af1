// inline(B): substitutes the value of a block without a reduction into its readers. Selects that the readers'
// guards decide disappear.
//
//   for i: B: t1[i] = f(i)
//   for i: C: t2[i] = g(t1[i + 1])      ->      for i: C: t2[i] = g(f(i + 1))
#include <algorithm>

#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/guards.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

// The block with a value in terms of the indices of its elements, and of loops around its nest. The indices
// are iteration variables, and the value may have loops: the write-back of an accumulator reads it at loops.
// Or the indices are loops, and the value has iteration variables: the block computes an accumulator.
Block OverElements(const Path& path) {
  Block block = path.block();
  const std::optional<VarMap> elements = ItersAt(block, block.indices);
  if (!elements) return block;
  VarMap loops, bindings;
  for (const IterVar& iter : block.iters) {
    if (!elements->contains(iter.var.get())) {
      bindings[iter.var.get()] = iter.binding;
      continue;
    }
    for (const For* loop : NestOf(path)) {
      const VarNode* var = loop->var.get();
      const auto linear = SplitLinear(iter.binding, var);
      if (IsGuard(block, iter) || !UsesVar(iter.binding, var) || !linear || linear->coefficient != 1)
        continue;
      loops[var] = VarRef(iter.var) - linear->rest;
    }
  }
  // A loop of one iteration, such as that of a depth in one padded part, is in no binding.
  for (const For* loop : NestOf(path)) {
    if (loop->var->extent == 1) loops.try_emplace(loop->var.get(), IntConst(0));
  }
  block.value = Substitute(Substitute(block.value, loops), bindings);
  return block;
}

// Whether the comparison is true wherever the block's guards hold.
bool IsImplied(const Guards& guards, const VarMap& bindings, const Expr& comparison) {
  if (comparison->op == Op::kAnd) {
    return std::ranges::all_of(comparison->args,
                               [&](const Expr& part) { return IsImplied(guards, bindings, part); });
  }
  const Expr margin = MarginOf(comparison);
  return margin != nullptr && guards.ProvablyAtLeastZero(Simplify(Substitute(margin, bindings)));
}

// A value of the block, simplified by its guards.
Expr DecidedValue(const Block& block, const Expr& value) {
  Guards guards;
  for (const IterVar& iter : block.iters) {
    if (IsGuard(block, iter)) guards.AssumeWithin(iter.binding, IntConst(iter.var->extent));
  }
  const VarMap bindings = BindingsOf(block);
  return Rewrite(value, [&](const Expr& e) -> Expr {
    return e->op == Op::kSelect && IsImplied(guards, bindings, e->args[0]) ? e->args[1] : nullptr;
  });
}

// OK when every buffer that the value reads exists at the place of `reader`.
absl::Status CheckBuffersReach(const Function& function, const Block& block, const Block& reader) {
  absl::Status status;
  ForEachLoad(block.value, [&](const ExprNode& load) {
    const absl::StatusOr<Path> alloc = FindAlloc(function, load.buffer);
    if (!alloc.ok() || ContainsBlock(alloc->target(), reader.name)) return;
    status.Update(Refusal("its value reads ", load.buffer->name, ", which does not exist where ", reader.name,
                          " stands"));
  });
  return status;
}

// OK when the value has no loop of the block's nest that its element does not name.
absl::Status CheckElementsDetermine(const Path& path, const Block& block) {
  const VarMap elements = *ItersAt(block, block.indices);
  for (const For* loop : NestOf(path)) {
    const VarNode* var = loop->var.get();
    if (!UsesVar(block.value, var) || elements.contains(var)) continue;
    return Refusal("its value depends on loop ", var->name, ", which its elements do not determine");
  }
  return absl::OkStatus();
}

absl::Status CheckInlinable(const Function& function, const Path& path, const Block& block) {
  if (block.reduce != ReduceOp::kNone) return Refusal("the block is a reduction");
  if (IsParam(function, block.out)) return Refusal(block.out->name, " is an output");
  if (!ItersAt(block, block.indices)) {
    return Refusal(block.out->name, " was packed or made an accumulator: its elements are not plain ",
                   "iteration variables any more");
  }
  MYCC_RETURN_IF_ERROR(CheckOnlyWriter(function, block));
  MYCC_RETURN_IF_ERROR(CheckElementsDetermine(path, block));
  const auto outer_vars = LoopVarsUnder(path.nodes.front());
  std::vector<const VarNode*> used;
  Visit(block.value, [&](const ExprNode& e) {
    if (e.op == Op::kVar && outer_vars.count(e.var.get())) used.push_back(e.var.get());
  });
  bool before = true;
  for (const Block* reader : BlocksUnder(function.body)) {
    before &= reader != &path.block();
    if (!Reads(*reader, block.out)) continue;
    if (before) {
      return Refusal(reader->name, " reads ", block.out->name, " before it is written again",
                     " (partial sums of an outer reduction loop)");
    }
    MYCC_RETURN_IF_ERROR(CheckBuffersReach(function, block, *reader));
    MYCC_ASSIGN_OR_RETURN(const Path reader_path, FindBlock(function, reader->name));
    const VarSet around = LoopVarsOn(reader_path);
    for (const VarNode* var : used) {
      if (!around.contains(var)) {
        return Refusal("its value depends on loop ", var->name, ", and the reader ", reader->name,
                       " is outside of it");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Function> Inline(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  const Block block = OverElements(path);
  MYCC_RETURN_IF_ERROR(CheckInlinable(function, path, block));
  MYCC_ASSIGN_OR_RETURN(Function result,
                        WithoutAlloc(WithBody(function, ReplaceAt(path, nullptr)), block.out));
  result.body = RewriteEach<Block>(result.body, [&](const Block& old) -> Stmt {
    if (!Reads(old, block.out)) return nullptr;
    auto reader = std::make_shared<Block>(old);
    reader->MapValues([&](const Expr& value) {
      const Expr inlined = Rewrite(value, [&](const Expr& e) -> Expr {
        return IsLoadOf(e, block.out) ? Substitute(block.value, *ItersAt(block, e->args)) : nullptr;
      });
      return DecidedValue(*reader, inlined);
    });
    return reader;
  });
  return result;
}

}  // namespace mycc
