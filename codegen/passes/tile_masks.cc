#include "codegen/passes/tile_masks.h"

#include <algorithm>
#include <optional>

#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"

namespace mycc {
namespace {

// Whether all threads of a block compute the same value, and may do so outside of the nest: registers are
// each thread's own, and an index that only the nest's guards keep inside of its tensor could leave it.
bool IsUniform(const Expr& expr) {
  bool uniform = true;
  ForEachLoad(expr, [&](const ExprNode& e) {
    uniform &= e.buffer->scope == Scope::kGlobal;
    for (size_t d = 0; d < e.args.size(); ++d) {
      const std::optional<Interval> range = RangeOf(e.args[d]);
      uniform &= range && range->min >= 0 && range->max < e.buffer->shape[d];
    }
  });
  return uniform;
}

// A condition under which the comparison holds for all values of `inner`; null when none is known.
Expr ForAll(const Expr& comparison, const VarSet& inner) {
  const Expr whole = MarginOf(comparison);
  if (whole == nullptr) return nullptr;
  std::optional<FreeAndRange> margin = SplitByVars(ToLinear(whole), inner);
  if (!margin) return nullptr;
  for (auto& [atom, coefficient] : margin->free.terms) {
    if (!IsUniform(atom)) return nullptr;
    atom = WithinSums(atom);
  }
  margin->free.constant += margin->range.min;
  return MakeBinary(Op::kLe, IntConst(0), FromLinear(margin->free));
}

bool IsAmong(const std::vector<Expr>& exprs, const Expr& expr) {
  return std::any_of(exprs.begin(), exprs.end(),
                     [&](const Expr& other) { return StructurallyEqual(other, expr); });
}

bool WritesRegisters(const Stmt& stmt) {
  const Store* store = DynAs<Store>(stmt);
  const Combine* combine = DynAs<Combine>(stmt);
  return (store != nullptr && store->buffer->scope == Scope::kLocal) ||
         (combine != nullptr && combine->buffer->scope == Scope::kLocal);
}

}  // namespace

TileMasks::TileMasks(const Stmt& root, Guards guards) : root_(root), guards_(guards) {
  VisitStmts(root, [&](const Stmt& stmt) {
    if (const For* loop = DynAs<For>(stmt)) inner_.insert(loop->var.get());
    if (const Let* let = DynAs<Let>(stmt)) inner_.insert(let->var.get());
    return true;
  });
  VisitStmts(root, [&](const Stmt& stmt) {
    if (IsGuard(stmt)) Collect(As<If>(stmt).condition);
    if (!WritesRegisters(stmt)) return true;
    ForEachExpr(stmt, [&](const Expr& value) {
      Visit(value, [&](const ExprNode& e) {
        if (e.op == Op::kSelect) Collect(e.args[0]);
      });
    });
    return true;
  });
}

bool TileMasks::IsGuard(const Stmt& stmt) const {
  const If* guard = DynAs<If>(stmt);
  return guards_ == Guards::kAreMasks && guard != nullptr && !guard->otherwise &&
         WritesRegisters(guard->then);
}

std::vector<TileMasks::MaskPart> TileMasks::PartsOf(const Expr& condition) const {
  std::vector<Expr> conditions;
  SplitConjunction(condition, &conditions);
  std::vector<MaskPart> parts;
  for (const Expr& part : conditions) parts.push_back({part, ForAll(part, inner_)});
  return parts;
}

// Adds the bounds of the condition's parts. A condition with a part that has none is no mask of the tile.
void TileMasks::Collect(const Expr& condition) {
  const std::vector<MaskPart> parts = PartsOf(condition);
  const auto is_bounded = [](const MaskPart& part) { return part.bound != nullptr; };
  if (!std::all_of(parts.begin(), parts.end(), is_bounded)) return;
  for (const MaskPart& part : parts) {
    if (!IsAmong(bounds_, part.bound)) bounds_.push_back(part.bound);
  }
}

// The parts of a mask's condition that are left: null for none, the condition itself for all.
Expr TileMasks::Remaining(const Expr& condition, const std::vector<Expr>& held) const {
  const std::vector<MaskPart> parts = PartsOf(condition);
  std::vector<Expr> left;
  for (const MaskPart& part : parts) {
    if (part.bound == nullptr || !IsAmong(held, part.bound)) left.push_back(part.condition);
  }
  if (left.empty()) return nullptr;
  return left.size() == parts.size() ? condition : JoinConjunction(left);
}

Stmt TileMasks::Where(const std::vector<Expr>& held) const {
  const auto without = [&](const Expr& value) {
    return Rewrite(value, [&](const Expr& e) -> Expr {
      if (e->op != Op::kSelect) return nullptr;
      const Expr left = Remaining(e->args[0], held);
      if (left == nullptr) return e->args[1];
      return left == e->args[0] ? nullptr : MakeSelect(left, e->args[1], e->args[2]);
    });
  };
  return RewriteStmts(root_, [&](const Stmt& stmt) -> Stmt {
    if (WritesRegisters(stmt)) return MapExprs(stmt, without);
    if (!IsGuard(stmt)) return nullptr;
    const If& guard = As<If>(stmt);
    const Expr left = Remaining(guard.condition, held);
    if (left == nullptr) return guard.then;
    return left == guard.condition ? nullptr : std::make_shared<If>(left, guard.then);
  });
}

}  // namespace mycc
