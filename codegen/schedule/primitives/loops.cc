// The extents and the order of loops.
//
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
//
// fuse([i, j]): turns adjacent loops of one perfect nest into one loop.
//
//   for i in I:                 for i+j in I*J:
//     for j in J: B[i, j]  ->     B[(i+j) // J, (i+j) % J]
//
// reorder([k, i]): puts loops of one perfect nest in the given order; other loops between them keep their
// places.
//
//   for i:                  for k:
//     for j:          ->      for j:
//       for k: B                for i: B
//
// With several blocks inside, at most one of the named loops may carry a reduction. Then dependences between
// the blocks run only along that loop, and every order of the others preserves them.
//
// reverse(l): executes a loop's iterations in the reverse order. The last rows of a causal mask take longest:
// if they begin first, the machine is busy to the end.
//
//   block l in 8: for k in l + 1: A(l, k)   ->   block l in 8: for k in 8 - l: A(7 - l, k)
//
// A loop that carries a reduction takes the terms from the last to the first. It is refused where another
// block uses the sums inside the loop, in the first or the last iteration.
//
// lane_predicate(l, 32): puts a loop of 32 iterations inside l; only its first iteration executes the body.
// Bound to threads, it lets one thread of a group of 32 do work that must be done once.
//
//   for l: B   ->   for l: for l.e in 32: B        (not executed where l.e >= 1)
//
// The new loop is called l.e2, l.e3, ... when a loop l.e, or a part of one, exists.
#include <algorithm>

#include "absl/strings/match.h"
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

bool IsPlain(const For& loop) {
  return loop.loop_kind == LoopKind::kSerial && loop.marks.instruction.empty();
}

absl::Status CheckPlain(const For& loop) {
  if (IsPlain(loop)) return absl::OkStatus();
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

// Whether the loop runs along elements of the block's tensor or accumulator, or along a guard of elements.
bool CarriesElements(const Block& block, const For& loop) {
  const VarNode* var = loop.var.get();
  return UsesVar(block.indices, var) || std::ranges::any_of(block.iters, [&](const IterVar& iter) {
           return !iter.reduce && !GuardsTerms(block, iter) && UsesVar(iter.binding, var);
         });
}

// Refuses to fuse an axis with a reduction: inside the fused loop there is no place to initialise or finish a
// result.
absl::Status CheckOneNature(const std::vector<const For*>& loops) {
  for (const Block* block : BlocksUnder(loops.back()->body)) {
    const auto carries = [&](auto&& what) {
      return std::ranges::any_of(loops, [&](const For* l) { return what(*block, *l); });
    };
    if (carries(CarriesReduction) && carries(CarriesElements)) {
      return Refusal("the fused loop would carry both a reduction and an axis of ", block->name);
    }
  }
  return absl::OkStatus();
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

  std::vector<int64_t> parts = {outer};
  parts.insert(parts.end(), factors.begin(), factors.end());
  std::vector<LoopSpec> nest;
  Expr value = IntConst(0);
  int64_t scale = inner;
  for (const int64_t part : parts) {
    if (!nest.empty()) scale /= part;
    nest.push_back({MakeVar(absl::StrCat(loop.var->name, ".", nest.size()), part)});
    if (part != 1) value = value + VarRef(nest.back().var) * scale;
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

absl::StatusOr<Function> Fuse(const Function& function, const Target&, const StepArgs& args) {
  const auto& names = args.Names(0);
  if (names.size() < 2) return Refusal("expected at least two loops");
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, names[0]));
  std::vector<const For*> loops = {&path.loop()};
  std::string fused_name = names[0];
  for (size_t i = 1; i < names.size(); ++i) {
    const For* inner = DynAs<For>(loops.back()->body);
    if (inner == nullptr || inner->var->name != names[i]) {
      return Refusal(names[i], " is not the only statement directly inside ", names[i - 1]);
    }
    loops.push_back(inner);
    // The fused loop's name has the block's name once: t3.a0 and t3.a1 -> t3.a0+a1.
    absl::StrAppend(&fused_name, "+", names[i].substr(names[i].find('.') + 1));
  }
  for (const For* loop : loops) {
    if (IsPlain(*loop)) continue;
    return Refusal(loop->var->name, " is ", LoopKindName(loop->loop_kind), "; only serial loops are fused");
  }
  MYCC_RETURN_IF_ERROR(CheckOneNature(loops));
  const Var fused = MakeVar(fused_name, IterationsOf(loops));
  const Stmt body = SubstituteVars(loops.back()->body, DigitsOf(loops, VarRef(fused)));
  return WithBody(function, ReplaceAt(path, MakeNest({{fused}}, body)));
}

absl::StatusOr<Function> Reorder(const Function& function, const Target&, const StepArgs& args) {
  const auto& names = args.Names(0);
  if (names.size() < 2) return Refusal("expected at least two loops");
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (std::find(names.begin(), name, *name) != name) return Refusal("loop ", *name, " is named twice");
  }
  const auto is_named = [&](const For* loop) { return std::ranges::count(names, loop->var->name) > 0; };

  // The outermost named loop is the one whose path contains no other.
  Path top;
  for (const std::string& name : names) {
    MYCC_ASSIGN_OR_RETURN(Path path, FindLoop(function, name));
    if (top.nodes.empty() || path.nodes.size() < top.nodes.size()) top = std::move(path);
  }
  const auto name_of = [](const For* loop) -> const std::string& { return loop->var->name; };
  std::vector<const For*> chain;
  size_t found = 0;
  int reduce_loops = 0;
  for (Stmt stmt = top.target(); found < names.size(); stmt = As<For>(stmt).body) {
    const For* loop = DynAs<For>(stmt);
    if (loop == nullptr) {
      return Refusal("the loops are not one perfect nest: ", chain.back()->var->name,
                     " holds something other than one loop");
    }
    const bool again = std::ranges::count(chain, loop->var->name, name_of) > 0;
    chain.push_back(loop);
    if (!is_named(loop)) continue;
    if (again) return Refusal("two loops are called ", loop->var->name);
    ++found;
    reduce_loops += IsReduceLoop(*loop);
  }
  if (BlocksUnder(chain.back()->body).size() > 1 && reduce_loops > 1) {
    return Refusal("several blocks stand inside, and more than one of the loops carries a reduction");
  }

  // Named loops take the positions of named loops, in the given order.
  std::vector<const For*> ordered = chain;
  auto name = names.begin();
  for (const For*& slot : ordered) {
    if (is_named(slot)) slot = *std::ranges::find(chain, *name++, name_of);
  }
  return WithBody(function, ReplaceAt(top, InLoops(ordered, chain.back()->body)));
}

absl::StatusOr<Function> Reverse(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  if (!IsConstInt(loop.extent)) {
    return Refusal("loop ", loop.var->name, " is no loop of constant extent");
  }
  const std::vector<const Block*> blocks = BlocksUnder(loop.body);
  for (const Block* block : blocks) {
    if (!CarriesReduction(*block, loop)) continue;
    const auto holds = [&](const Alloc& alloc) { return alloc.buffer == block->out; };
    const auto reads = [&](const Block* other) { return other != block && Reads(*other, block->out); };
    if (AnyOf<Alloc>(loop.body, holds) || (block->init && std::ranges::any_of(blocks, reads))) {
      return Refusal("loop ", loop.var->name, " carries the reduction ", block->name,
                     ", whose first or last iteration differs from the others");
    }
  }
  const Expr mirrored = Simplify(loop.extent - 1 - VarRef(loop.var));
  return WithLoopBody(function, path, SubstituteVars(loop.body, {{loop.var.get(), mirrored}}));
}

absl::StatusOr<Function> LanePredicate(const Function& function, const Target&, const StepArgs& args) {
  constexpr int64_t kMaxGroup = 8192;  // threads of a cluster's blocks
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  const int64_t group = args.Int(1);
  if (group < 1 || group > kMaxGroup) {
    return Refusal("a group of ", group, "; expected 1 to ", kMaxGroup);
  }
  if (!loop.marks.instruction.empty()) return Refusal("the loop belongs to a hardware instruction");
  // Parts of a loop that was split have names that begin with its own.
  const auto is_taken = [&](const std::string& name) {
    return AnyOf<For>(function.body, [&](const For& other) {
      return other.var->name == name || absl::StartsWith(other.var->name, name + ".");
    });
  };
  const Var member = MakeVar(FirstFree(absl::StrCat(loop.var->name, ".e"), is_taken), group);
  const Stmt elected = RewriteEach<Block>(loop.body, [&](const Block& old) {
    return Changed(old, [&](Block* block) { AddGuard(block, 1, VarRef(member)); });
  });
  return WithLoopBody(function, path, MakeNest({{member}}, elected));
}

}  // namespace mycc
