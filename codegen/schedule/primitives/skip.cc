// Primitives that leave out terms that add nothing: masked ones, and products with the zeros of padding.
//
// skip_masked(l): leaves out iterations of loop l, over parts of an axis of keys, in which masks hide all
// keys from all rows: causal masks hide the last parts, sliding windows the first ones, too.
//
//   for l in 8:                                        for l in min(8, i.0 + 1):
//     for i: for j:                                      for i: for j:
//       R: m[i] max= select(l*64+j <= i.0*64+i,   ->       R: m[i] max= select(..)
//                           s[i, j], -inf)
//
// A window hides the first keys, too. On a CPU a condition leaves out the first iterations. On a GPU the loop
// begins later, because copies of tiles would run ahead for nothing:
//
//   for l.from in min(8, ..) - max(0, ..): let l = l.from + max(0, ..): ..
//
// Apply it last: other primitives expect loops of constant extent.
//
// skip_zeros(B, p, d): omits from block B's sum the products with the zeros of the padded tensor p, before
// and after its elements along dimension d. When B skips all zeros, inlining p leaves no select.
//
//   for i in 10: p: t1[i] = select(1 <= i && i < 9, t0[i - 1], 0)
//   for i in 8: for r in 3: B: t2[i] += t1[i + r] * w[r]
//     ->
//   for i in 8: for r in 3: B: t2[i] += t1[i + r] * w[r]    where i + r - 1 is in 8
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/expr/product.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/padding.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

bool IsFloatConst(const Expr& expr, double value) {
  return expr->op == Op::kConst && IsFloat(expr->dtype) && expr->value.f == value;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Conditions = std::vector<Expr>;

Conditions MasksOf(const Expr& value, double empty, const Stmt& body);

Conditions Both(Conditions a, const Conditions& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// -inf survives a positive factor, and 0 any.
Conditions MasksOfProduct(const Expr& value, double empty, const Stmt& body) {
  if (empty == 0) return Both(MasksOf(value->args[0], 0, body), MasksOf(value->args[1], 0, body));
  for (const int side : {0, 1}) {
    const Expr& factor = value->args[1 - side];
    if (factor->op == Op::kConst && factor->value.f > 0) return MasksOf(value->args[side], empty, body);
  }
  return {};
}

// -inf minus or plus a number; the other term is finite, or its own mask is in the same sum.
Conditions MasksOfSum(const Expr& value, double empty, const Stmt& body) {
  if (empty == 0) return {};
  const Conditions left = MasksOf(value->args[0], empty, body);
  return value->op == Op::kSub ? left : Both(left, MasksOf(value->args[1], empty, body));
}

// A tile that is computed in each iteration, element by element.
Conditions MasksOfTile(const Expr& load, double empty, const Stmt& body) {
  for (const Block* block : BlocksUnder(body)) {
    if (block->out != load->buffer || block->reduce != ReduceOp::kNone) continue;
    const std::optional<VarMap> iters = ItersAt(*block, load->args);
    if (!iters) return {};
    return Substitute(MasksOf(block->value, empty, body), *iters);
  }
  return {};
}

// Conditions of a value in the body of a loop. The value is `empty` (-inf or 0) when one of them is false.
Conditions MasksOf(const Expr& value, double empty, const Stmt& body) {
  switch (value->op) {
    case Op::kSelect: {
      if (!IsFloatConst(value->args[2], empty)) return {};
      Conditions conditions = MasksOf(value->args[1], empty, body);
      SplitConjunction(value->args[0], &conditions);
      return conditions;
    }
    case Op::kLoad: return MasksOfTile(value, empty, body);
    case Op::kCast: return MasksOf(value->args[0], empty, body);
    case Op::kExp:
    case Op::kExp2: return empty == 0 ? MasksOf(value->args[0], -kInfinity, body) : Conditions();
    case Op::kMul: return MasksOfProduct(value, empty, body);
    case Op::kDiv: return empty == 0 ? MasksOf(value->args[0], empty, body) : Conditions();
    case Op::kAdd:
    case Op::kSub: return MasksOfSum(value, empty, body);
    default: return {};
  }
}

// Takes the terms of a guard's binding out of an index, and adds the most that they can be: a split that
// overshoots is not executed beyond the guard's domain.
void ApplyGuard(const IterVar& guard, const VarSet& inner, Linear* index) {
  const Linear binding = ToLinear(guard.binding);
  int64_t times = 0;
  Linear rest = *index;
  for (const auto& [atom, coefficient] : binding.terms) {
    if (atom->op != Op::kVar || !inner.contains(atom->var.get())) return;
    const int64_t in_index = index->CoefficientOf(atom->var.get());
    if (times == 0) times = in_index / coefficient;
    if (times <= 0 || in_index != times * coefficient) return;
    std::erase_if(rest.terms, [&, &atom = atom](const auto& term) { return term.first->var == atom->var; });
  }
  rest.constant += times * (guard.var->extent - 1 - binding.constant);
  if (times > 0) *index = rest;
}

// The largest value of an index of the block while the inner variables run; null when that is not known.
Expr Largest(const Expr& index, const Block& block, const VarSet& inner) {
  Linear linear = ToLinear(Simplify(index));
  for (const IterVar& iter : block.iters) {
    if (IsGuard(block, iter)) ApplyGuard(iter, inner, &linear);
  }
  std::optional<FreeAndRange> split = SplitByVars(linear, inner);
  if (!split) return nullptr;
  for (auto& term : split->free.terms) term.first = WithinSums(term.first);
  split->free.constant += split->range.max;
  return FromLinear(split->free);
}

struct Bounds {
  std::vector<Expr> firsts, ends;  // all hold
};

// The iterations of `loop` in which a condition of the block can be true anywhere.
void AddBounds(const Expr& condition, const Block& block, const For& loop, Bounds* bounds) {
  const Expr margin = MarginOf(condition);
  if (margin == nullptr) return;
  const VarSet inner = LoopVarsUnder(loop.body);
  const Expr bound = Substitute(margin, BindingsOf(block));
  VarMap at_zero;  // loops of one iteration, which are in the bounds of some reductions alone
  Visit(bound, [&](const ExprNode& e) {
    if (e.op == Op::kVar && e.var != loop.var && e.var->extent == 1) at_zero[e.var.get()] = IntConst(0);
  });
  const Expr largest = Largest(Substitute(bound, at_zero), block, inner);
  if (largest == nullptr) return;
  const auto linear = SplitLinear(largest, loop.var.get());
  if (!linear || linear->coefficient == 0) return;
  const HalfLine where = WhereAtLeastZero(*linear);
  if (where.end) bounds->ends.push_back(Simplify(where.end));
  if (where.first) bounds->firsts.push_back(Simplify(where.first));
}

// The bounds that hold for all reductions: of two that differ by a number, the wider one (`sign` 1: the
// larger).
std::vector<Expr> Common(const std::vector<Expr>& a, const std::vector<Expr>& b, int sign) {
  std::vector<Expr> common;
  for (const Expr& bound : a) {
    for (const Expr& other : b) {
      const Linear beyond = ToLinear(Simplify(other - bound));
      if (!beyond.terms.empty()) continue;
      common.push_back(beyond.constant * sign > 0 ? other : bound);
      break;
    }
  }
  return common;
}

// Iterations first <= l < end, over the loops around the loop. Without a bound `first` is 0 and `end` the
// loop's extent.
struct MaskedRange {
  Expr first, end;
};

// The iterations of a loop in which every sum may get a term: masks of scores (select(c, x, -inf)) and zeros
// of weights leave some of its first and last iterations without any. FailedPrecondition names a reduction
// that the loop carries and that masks do not empty.
absl::StatusOr<MaskedRange> RangeOfTerms(const Path& path) {
  const For& loop = path.loop();
  std::optional<Bounds> all;
  std::string last;
  for (const Block* block : BlocksUnder(loop.body)) {
    if (block->reduce == ReduceOp::kNone || !CarriesReduction(*block, loop)) continue;
    if (block->reduce != ReduceOp::kSum && block->reduce != ReduceOp::kMax)
      return Refusal(block->name, " is neither a sum nor a maximum");
    Bounds bounds;
    for (const Expr& condition :
         MasksOf(block->value, block->reduce == ReduceOp::kMax ? -kInfinity : 0, loop.body))
      AddBounds(condition, *block, loop, &bounds);
    all = all ? Bounds{Common(all->firsts, bounds.firsts, -1), Common(all->ends, bounds.ends, 1)} : bounds;
    last = block->name;
  }
  if (!all || (all->firsts.empty() && all->ends.empty())) {
    return Refusal("no mask empties iterations of loop ", loop.var->name,
                   " for all its reductions; expected select(c, score, -inf) with a comparison of indices");
  }
  Expr first = IntConst(0), end = IntConst(loop.var->extent);
  for (const Expr& bound : all->firsts) first = LargerOf(first, bound);
  for (const Expr& bound : all->ends) end = SmallerOf(end, bound);
  return MaskedRange{first, LargerOf(IntConst(0), end)};
}

// The factor of a product that loads the tensor.
const ExprNode* FactorOf(const Block& block, const std::string& buffer) {
  if (!SumsProducts(block)) return nullptr;
  for (const Expr& factor : block.value->args) {
    const ExprNode* load = LoadOfFactor(factor);
    if (load != nullptr && load->buffer->name == buffer) return load;
  }
  return nullptr;
}

// The range of the block's elements along the dimension that are not padding.
std::optional<Interval> ElementsOf(const Block& block, int64_t dim) {
  if (block.reduce != ReduceOp::kNone || !WritesAtItsAxes(block)) return std::nullopt;
  return ElementsAlong(block.value, block.indices[dim]->var);
}

}  // namespace

absl::StatusOr<Function> SkipMasked(const Function& function, const Target& target, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  if (loop.loop_kind != LoopKind::kSerial || !IsConstInt(loop.extent)) {
    return Refusal("loop ", loop.var->name, " is no serial loop of constant extent");
  }
  MYCC_ASSIGN_OR_RETURN(const MaskedRange range, RangeOfTerms(path));
  const auto with = [&](ForParts parts) { return WithBody(function, ReplaceAt(path, loop.With(parts))); };
  if (IsConstInt(range.first, int64_t{0})) return with({.extent = range.end});
  if (target.kind == TargetKind::kCpu) {
    const Expr matters = MakeBinary(Op::kLe, range.first, VarRef(loop.var));
    return with({.extent = range.end, .body = std::make_shared<If>(matters, loop.body)});
  }
  const Expr count = LargerOf(IntConst(0), Simplify(range.end - range.first));
  if (IsConstInt(count, int64_t{0})) return with({.extent = count});
  // No more iterations than there can be: copies ahead of others stay inside of their tensors.
  const std::optional<Interval> counts = RangeOf(count);
  const int64_t most = std::clamp<int64_t>(counts ? counts->max : loop.var->extent, 1, loop.var->extent);
  const Var from = MakeVar(absl::StrCat(loop.var->name, ".from"), most);
  return with({.var = from,
               .extent = count,
               .body = std::make_shared<Let>(loop.var, VarRef(from) + range.first, loop.body)});
}

absl::StatusOr<Function> SkipZeros(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindBlock(function, args.Name(0)));
  MYCC_RETURN_IF_ERROR(CheckNaive(path, /*guards_allowed=*/true));
  const Block& block = path.block();
  const ExprNode* load = FactorOf(block, args.Name(1));
  if (load == nullptr) {
    return Refusal(block.name, " does not sum products of elements of ", args.Name(1));
  }
  const int64_t dim = args.Int(2);
  if (dim < 0 || dim >= load->buffer->rank()) {
    return Refusal("dimension ", dim, "; ", load->buffer->name, " has ", load->buffer->rank());
  }
  const Block* writer = WriterOf(function, load->buffer);
  const auto elements = writer ? ElementsOf(*writer, dim) : std::nullopt;
  if (!elements) {
    return Refusal(load->buffer->name, " is not select(a <= i && i < b && .., element, 0) along dimension ",
                   dim);
  }
  auto skipping = std::make_shared<Block>(block);
  const Var place = MakeVar(absl::StrCat("z", dim), elements->max - elements->min + 1);
  const Expr index = Substitute(load->args[dim], BindingsOf(block));
  skipping->iters.push_back({place, false, Simplify(index - elements->min)});
  if (!GuardsTerms(*skipping, skipping->iters.back())) {
    return Refusal("every term of some sums of ", block.name, " would be skipped; expected index ", dim,
                   " to depend on a reduction axis");
  }
  return WithBody(function, ReplaceAt(path, skipping));
}

}  // namespace mycc
