// Evaluates the masks of a tile in registers only where the tile crosses their edge (causal attention):
//
//   for j:                                           for j:
//     thread a: for b:                       ->        if j*64 + 63 <= i*128:
//       t[a,b] = select(j*64 + b <= i*128 + a,           thread a: for b: t[a,b] = u[a,b]
//                       u[a,b], -inf)                  else: the nest as it was
//
// The new condition is the mask's own with the least favourable element of the tile. All threads of a block
// agree on it, so each of them reaches the barriers of the nest that it takes.
#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/expr/range.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/copy_stmt.h"
#include "codegen/passes/passes.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

using VarSet = std::unordered_set<const VarNode*>;

bool UsesAny(const Expr& expr, const VarSet& vars) {
  return std::any_of(vars.begin(), vars.end(), [&](const VarNode* var) { return UsesVar(expr, var); });
}

// Whether all threads get the same value, and may: registers are their own, and the nest's guards come later.
bool IsUniform(const Expr& expr) {
  bool uniform = true;
  Visit(expr, [&](const ExprNode& e) {
    if (e.op != Op::kLoad) return;
    uniform &= e.buffer->scope == Scope::kGlobal;
    for (size_t d = 0; d < e.args.size(); ++d) {
      const std::optional<Interval> range = RangeOf(e.args[d]);
      uniform &= range && range->min >= 0 && range->max < e.buffer->shape[d];
    }
  });
  return uniform;
}

// Holds only if the comparison holds for all values of `inner`; null when that cannot be said.
Expr ForAll(const Expr& comparison, const VarSet& inner) {
  if (comparison->op != Op::kLt && comparison->op != Op::kLe) return nullptr;
  if (comparison->args[0]->dtype != DType::kI64) return nullptr;
  const Linear margin = ToLinear(MarginOf(comparison));
  Linear least, of_elements;
  least.constant = margin.constant;
  for (const auto& [atom, coefficient] : margin.terms) {
    if (!UsesAny(atom, inner)) {
      if (!IsUniform(atom)) return nullptr;
      least.terms.emplace_back(atom, coefficient);
      continue;
    }
    of_elements.terms.emplace_back(atom, coefficient);
  }
  const std::optional<Interval> range = RangeOfLinear(of_elements);
  if (!range) return nullptr;
  least.constant += range->min;
  return MakeBinary(Op::kLe, IntConst(0), FromLinear(least));
}

// The masks of one nest of thread loops.
class NestMasks {
 public:
  explicit NestMasks(const Stmt& nest) : nest_(nest) {
    VisitStmts(nest, [&](const Stmt& stmt) {
      if (const For* loop = DynAs<For>(stmt)) inner_.insert(loop->var.get());
      return true;
    });
    VisitStmts(nest, [&](const Stmt& stmt) {
      if (IsOfRegisters(stmt)) ForEachExpr(stmt, [&](const Expr& value) { Collect(value); });
      return true;
    });
  }

  // The nest in two versions; null when it has no mask that one of the `turns` (loop variables) decides.
  Stmt Split(const VarSet& turns) const {
    const Expr all = Simplify(JoinConjunction(conditions_));
    if (conditions_.empty() || !UsesAny(all, turns)) return nullptr;
    const Stmt plain = RewriteStmts(nest_, [&](const Stmt& stmt) -> Stmt {
      if (!IsOfRegisters(stmt)) return nullptr;
      return MapExprs(stmt, [&](const Expr& value) {
        return Rewrite(value, [&](const Expr& e) { return BoundOf(*e).empty() ? nullptr : e->args[1]; });
      });
    });
    return std::make_shared<If>(all, CopyWithSuffix(plain, ".inside"), nest_);
  }

 private:
  static bool IsOfRegisters(const Stmt& stmt) {
    const Store* store = DynAs<Store>(stmt);
    const Combine* combine = DynAs<Combine>(stmt);
    return (store != nullptr && store->buffer->scope == Scope::kLocal) ||
           (combine != nullptr && combine->buffer->scope == Scope::kLocal);
  }

  // The conditions without the nest's variables under which a select takes its first arm; none when it is no
  // mask of the tile.
  std::vector<Expr> BoundOf(const ExprNode& e) const {
    std::vector<Expr> parts, bounds;
    if (e.op != Op::kSelect) return bounds;
    SplitConjunction(e.args[0], &parts);
    for (const Expr& part : parts) {
      Expr bound = ForAll(part, inner_);
      if (!bound) return {};
      bounds.push_back(std::move(bound));
    }
    return bounds;
  }

  void Collect(const Expr& value) {
    Visit(value, [&](const ExprNode& e) {
      for (const Expr& bound : BoundOf(e)) {
        const bool is_new = std::none_of(conditions_.begin(), conditions_.end(),
                                         [&](const Expr& other) { return StructurallyEqual(other, bound); });
        if (is_new) conditions_.push_back(bound);
      }
    });
  }

  const Stmt& nest_;
  VarSet inner_;
  std::vector<Expr> conditions_;
};

Stmt UnmaskIn(const Stmt& stmt, VarSet turns) {
  if (stmt->kind == StmtKind::kCopy) return stmt;
  if (const For* loop = DynAs<For>(stmt)) {
    if (loop->loop_kind == LoopKind::kSerial) turns.insert(loop->var.get());
    if (loop->loop_kind == LoopKind::kThread) {
      const Stmt split = NestMasks(stmt).Split(turns);
      return split ? split : stmt;
    }
  }
  return MapChildren(stmt, [&](const Stmt& child) { return UnmaskIn(child, turns); });
}

}  // namespace

Stmt UnmaskTiles(const Stmt& body) { return UnmaskIn(body, {}); }

}  // namespace mycc
