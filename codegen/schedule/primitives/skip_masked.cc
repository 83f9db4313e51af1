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
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

bool IsFloatConst(const Expr& expr, double value) {
  return expr->op == Op::kConst && IsFloat(expr->dtype) && expr->value.f == value;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Finds conditions without which a value is a known number.
class Masks {
 public:
  explicit Masks(const Stmt& body) : body_(body) {}

  // Conditions of a value. The value is `empty` (-inf or 0) when one of them is false.
  std::vector<Expr> Of(const Expr& value, double empty) const {
    switch (value->op) {
      case Op::kSelect:
        if (IsFloatConst(value->args[2], empty)) {
          std::vector<Expr> conditions = Of(value->args[1], empty);
          SplitConjunction(value->args[0], &conditions);
          return conditions;
        }
        return {};
      case Op::kLoad: return OfTile(value, empty);
      case Op::kCast: return Of(value->args[0], empty);
      case Op::kExp:
      case Op::kExp2: return empty == 0 ? Of(value->args[0], -kInfinity) : std::vector<Expr>();
      case Op::kMul: return OfProduct(value, empty);
      case Op::kDiv: return empty == 0 ? Of(value->args[0], empty) : std::vector<Expr>();
      case Op::kAdd:
      case Op::kSub: return OfSum(value, empty);
      default: return {};
    }
  }

 private:
  // -inf survives a positive factor, and 0 any.
  std::vector<Expr> OfProduct(const Expr& value, double empty) const {
    if (empty == 0) return Both(Of(value->args[0], 0), Of(value->args[1], 0));
    for (const int side : {0, 1}) {
      const Expr& factor = value->args[1 - side];
      if (factor->op == Op::kConst && factor->value.f > 0) return Of(value->args[side], empty);
    }
    return {};
  }

  // -inf minus or plus a number; the other term is finite, or its own mask is in the same sum.
  std::vector<Expr> OfSum(const Expr& value, double empty) const {
    if (empty == 0) return {};
    const std::vector<Expr> left = Of(value->args[0], empty);
    return value->op == Op::kSub ? left : Both(left, Of(value->args[1], empty));
  }

  static std::vector<Expr> Both(std::vector<Expr> a, const std::vector<Expr>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  // A tile that is computed in each iteration, element by element.
  std::vector<Expr> OfTile(const Expr& load, double empty) const {
    for (const Block* block : BlocksUnder(body_)) {
      if (block->out != load->buffer || block->reduce != ReduceOp::kNone) continue;
      const std::optional<VarMap> iters = ItersAt(*block, load->args);
      if (!iters) return {};
      std::vector<Expr> conditions = Of(block->value, empty);
      for (Expr& condition : conditions) condition = Substitute(condition, *iters);
      return conditions;
    }
    return {};
  }

  const Stmt& body_;
};

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
  const Masks masks(loop.body);
  std::optional<Bounds> all;
  std::string last;
  for (const Block* block : BlocksUnder(loop.body)) {
    if (block->reduce == ReduceOp::kNone || !CarriesReduction(*block, loop)) continue;
    if (block->reduce != ReduceOp::kSum && block->reduce != ReduceOp::kMax)
      return Refusal(block->name, " is neither a sum nor a maximum");
    Bounds bounds;
    for (const Expr& condition : masks.Of(block->value, block->reduce == ReduceOp::kMax ? -kInfinity : 0))
      AddBounds(condition, *block, loop, &bounds);
    all = all ? Bounds{Common(all->firsts, bounds.firsts, -1), Common(all->ends, bounds.ends, 1)} : bounds;
    last = block->name;
  }
  if (!all || (all->firsts.empty() && all->ends.empty())) {
    return Refusal("no mask empties iterations of loop ", loop.var->name,
                   " for all its reductions; expected select(c, score, -inf) with a comparison of indices");
  }
  const Expr extent = IntConst(loop.var->extent), zero = IntConst(0);
  MaskedRange range{zero, extent};
  for (const Expr& first : all->firsts) range.first = MakeBinary(Op::kMax, range.first, first);
  for (const Expr& end : all->ends) range.end = MakeBinary(Op::kMin, range.end, end);
  range.first = Simplify(range.first);
  range.end = Simplify(MakeBinary(Op::kMax, zero, range.end));
  return range;
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
  const Expr count = Simplify(MakeBinary(Op::kMax, IntConst(0), Simplify(range.end - range.first)));
  if (IsConstInt(count, int64_t{0})) return with({.extent = count});
  // No more iterations than there can be: copies ahead of others stay inside of their tensors.
  const std::optional<Interval> counts = RangeOf(count);
  const int64_t most = std::clamp<int64_t>(counts ? counts->max : loop.var->extent, 1, loop.var->extent);
  const Var from = MakeVar(absl::StrCat(loop.var->name, ".from"), most);
  return with({.var = from,
               .extent = count,
               .body = std::make_shared<Let>(loop.var, VarRef(from) + range.first, loop.body)});
}

}  // namespace mycc
