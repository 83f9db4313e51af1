// Converts a sum of indices to f32 in two parts. The part of unrolled loops is a constant in each copy of
// their bodies, and the rest is the same in all copies, so that it is converted once. A GPU converts at a
// quarter of the rate of additions, or less.
//
//   unroll b in 16: t[b] = f32(i - j*64 - b)    ->    unroll b in 16: t[b] = f32(i - j*64) + f32(-b)
//
// The result is the same: both parts and their sum are whole numbers below 2^24 in size, which f32 has
// exactly.
#include <optional>

#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"

namespace mycc {
namespace {

bool IsExactInF32(const Expr& value) {
  constexpr int64_t kFirstInexact = int64_t{1} << 24;
  const std::optional<Interval> range = RangeOf(value);
  return range && range->min > -kFirstInexact && range->max < kFirstInexact;
}

// The two parts added up; null for other expressions, and where one part is all there is.
Expr SplitConversion(const Expr& conversion, const VarSet& unrolled) {
  if (conversion->op != Op::kCast || conversion->dtype != DType::kF32 ||
      conversion->args[0]->dtype != DType::kI64 || !IsExactInF32(conversion->args[0]))
    return nullptr;
  const Linear whole = ToLinear(conversion->args[0]);
  Linear own, rest;
  rest.constant = whole.constant;
  for (const auto& [atom, coefficient] : whole.terms) {
    if (UsesAnyOf(atom, unrolled) && atom->op != Op::kVar) return nullptr;
    (UsesAnyOf(atom, unrolled) ? own : rest).terms.emplace_back(atom, coefficient);
  }
  if (own.terms.empty() || rest.terms.empty()) return nullptr;
  const Expr of_own = FromLinear(own), of_rest = FromLinear(rest);
  if (!IsExactInF32(of_own) || !IsExactInF32(of_rest)) return nullptr;
  return MakeCast(DType::kF32, of_rest) + MakeCast(DType::kF32, of_own);
}

}  // namespace

Stmt SplitConversions(const Stmt& body) {
  VarSet unrolled;
  VisitEach<For>(body, [&](const For& loop) {
    const bool is_unrolled = loop.loop_kind == LoopKind::kUnroll || loop.loop_kind == LoopKind::kVector;
    if (is_unrolled) unrolled.insert(loop.var.get());
  });
  return MapAllExprs(body, [&](const Expr& expr) {
    return Rewrite(expr, [&](const Expr& e) { return SplitConversion(e, unrolled); });
  });
}

}  // namespace mycc
