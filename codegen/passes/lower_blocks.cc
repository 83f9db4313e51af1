// Replaces blocks by Stores.
//
//   for l.0 in 4:                                              for l.0 in 4: for l.1 in 8:
//     for l.1 in 8:                                              if l.0*8 + l.1 < 30: t2[l.0*8 + l.1] = 0
//       for r: block t2: t2[i] += t1[i, r], init,       ->       for r:
//                i in 30 at l.0*8 + l.1                            if l.0*8 + l.1 < 30: t2[..] += t1[.., r]
//
// The initialization is placed just before the outermost loop that carries the reduction, under copies of the
// spatial loops inside that loop.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"

namespace mycc {
namespace {

class BlockLowering {
 public:
  Stmt Lower(const Stmt& stmt) {
    if (stmt->kind == StmtKind::kBlock) return LowerBlock(As<Block>(stmt));
    if (stmt->kind != StmtKind::kFor)
      return MapChildren(stmt, [&](const Stmt& child) { return Lower(child); });
    const For& loop = As<For>(stmt);
    loops_.push_back(Enclosing{&loop, {}});
    Stmt body = Lower(loop.body);
    std::vector<Stmt> parts = std::move(loops_.back().before);
    loops_.pop_back();
    if (body == loop.body && parts.empty()) return stmt;
    parts.push_back(
        std::make_shared<For>(loop.var, loop.extent, loop.loop_kind, std::move(body), loop.marks));
    return MakeSeq(std::move(parts));
  }

  absl::Status status() const { return status_; }

 private:
  struct Enclosing {
    const For* loop;
    std::vector<Stmt> before;  // initialisations to be placed just before this loop
  };

  static VarMap BindingsOf(const Block& block) {
    VarMap map;
    for (const IterVar& iter : block.iters) map[iter.var.get()] = iter.binding;
    return map;
  }

  static Expr Bound(const Expr& expr, const VarMap& bindings) { return Simplify(Substitute(expr, bindings)); }

  static std::vector<Expr> Bound(const std::vector<Expr>& exprs, const VarMap& bindings) {
    std::vector<Expr> bound;
    bound.reserve(exprs.size());
    for (const Expr& expr : exprs) bound.push_back(Bound(expr, bindings));
    return bound;
  }

  // Whether some reduction variable runs along a loop that `binding` depends on.
  static bool FollowsReduction(const Block& block, const Expr& binding) {
    return std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& iter) {
      bool shares = false;
      if (iter.reduce)
        Visit(iter.binding,
              [&](const ExprNode& e) { shares |= e.op == Op::kVar && UsesVar(binding, e.var.get()); });
      return shares;
    });
  }

  // `stmt` under the condition that all bindings lie in their domains; for an initialisation, only those that
  // do not change during the reduction.
  static Stmt Guarded(const Block& block, bool with_reduce, Stmt stmt) {
    Expr guard = BoolConst(true);
    for (const IterVar& iter : block.iters) {
      if (!with_reduce && FollowsReduction(block, iter.binding)) continue;
      const Expr binding = Simplify(iter.binding);
      const Expr below = Simplify(MakeBinary(Op::kLt, binding, IntConst(iter.var->extent)));
      const Expr above = Simplify(MakeBinary(Op::kLe, IntConst(0), binding));
      guard = MakeBinary(Op::kAnd, guard, MakeBinary(Op::kAnd, above, below));
    }
    if (IsConstInt(guard, 1)) return stmt;
    return std::make_shared<If>(guard, std::move(stmt));
  }

  Stmt LowerBlock(const Block& block) {
    const VarMap bindings = BindingsOf(block);
    const std::vector<Expr> indices = Bound(block.indices, bindings);
    const Expr value = Bound(block.value, bindings);
    Stmt update;
    if (block.reduce == ReduceOp::kNone) {
      update = std::make_shared<Store>(block.out, indices, value);
    } else if (block.arg_value) {
      update = ArgUpdate(block, indices, value);
    } else {
      update = std::make_shared<Store>(block.out, indices,
                                       ReduceCombine(block.reduce, Load(block.out, indices), value));
    }
    update = Guarded(block, /*with_reduce=*/true, std::move(update));
    return block.init ? AddInit(block, bindings, std::move(update)) : update;
  }

  // True when loops visit the values of `binding` in ascending order: it is a sum of loop variables in which
  // each step is longer than all loops inside together.
  bool Ascends(const Expr& binding) const {
    const Linear linear = ToLinear(binding);
    int64_t inner = 0, found = 0;
    for (auto it = loops_.rbegin(); it != loops_.rend(); ++it) {
      const VarNode* var = it->loop->var.get();
      const int64_t coefficient = linear.CoefficientOf(var);
      if (coefficient == 0) continue;
      if (coefficient <= inner) return false;
      inner += coefficient * (var->extent - 1);
      ++found;
    }
    return found == static_cast<int64_t>(linear.terms.size());
  }

  // The position changes when the value is better than the best so far (NaN is better than any number), or
  // equal and at a lower position. It is stored first, because the comparison needs the old best value.
  Stmt ArgUpdate(const Block& block, const std::vector<Expr>& indices, const Expr& value) const {
    Expr binding;
    for (const IterVar& iter : block.iters) {
      if (iter.reduce) binding = Simplify(iter.binding);
    }
    const Expr position = MakeCast(block.out->dtype, binding);
    const Expr best = Load(block.arg_value, indices), best_at = Load(block.out, indices);
    const bool is_float = IsFloat(value->dtype);
    const auto is_nan = [](const Expr& e) { return MakeBinary(Op::kNe, e, e); };
    Expr better = block.reduce == ReduceOp::kArgMax ? MakeBinary(Op::kLt, best, value)
                                                    : MakeBinary(Op::kLt, value, best);
    if (is_float) {
      better =
          MakeBinary(Op::kOr, better, MakeBinary(Op::kAnd, is_nan(value), MakeBinary(Op::kEq, best, best)));
    }
    if (!Ascends(binding)) {
      Expr as_good = MakeBinary(Op::kEq, value, best);
      if (is_float) as_good = MakeBinary(Op::kOr, as_good, MakeBinary(Op::kAnd, is_nan(value), is_nan(best)));
      better =
          MakeBinary(Op::kOr, better, MakeBinary(Op::kAnd, as_good, MakeBinary(Op::kLt, position, best_at)));
    }
    return MakeSeq({std::make_shared<Store>(block.out, indices, MakeSelect(better, position, best_at)),
                    std::make_shared<Store>(block.arg_value, indices, MakeSelect(better, value, best))});
  }

  Stmt AddInit(const Block& block, const VarMap& bindings, Stmt update) {
    std::unordered_set<const VarNode*> reduce_vars, spatial_vars;
    for (const IterVar& iter : block.iters) {
      if (!iter.reduce && FollowsReduction(block, iter.binding)) continue;  // guards terms of the reduction
      Visit(iter.binding, [&](const ExprNode& e) {
        if (e.op == Op::kVar) (iter.reduce ? reduce_vars : spatial_vars).insert(e.var.get());
      });
    }
    size_t outermost = 0;
    while (outermost < loops_.size() && !reduce_vars.count(loops_[outermost].loop->var.get())) ++outermost;
    Stmt init = InitStores(block, bindings);
    if (outermost == loops_.size()) return MakeSeq({std::move(init), std::move(update)});

    VarMap renamed;
    for (size_t i = loops_.size(); i-- > outermost;) {
      const For& loop = *loops_[i].loop;
      if (!spatial_vars.count(loop.var.get())) continue;
      if (reduce_vars.count(loop.var.get())) {
        status_.Update(absl::FailedPreconditionError(absl::StrCat(
            "loop ", loop.var->name, " carries both a reduction and an axis of block ", block.name)));
      }
      const bool own = absl::StartsWith(loop.var->name, absl::StrCat(block.name, "."));
      const Var var = MakeVar(
          absl::StrCat(loop.var->name, own ? ".init" : absl::StrCat(".init.", block.name)), loop.var->extent);
      renamed[loop.var.get()] = VarRef(var);
      init = std::make_shared<For>(var, loop.extent, loop.loop_kind, std::move(init));
    }
    loops_[outermost].before.push_back(SubstituteVars(init, renamed));
    return update;
  }

  static Stmt InitStores(const Block& block, const VarMap& bindings) {
    const std::vector<Expr> indices = Bound(block.indices, bindings);
    std::vector<Stmt> stores;
    if (block.arg_value) {
      const ReduceOp best = block.reduce == ReduceOp::kArgMax ? ReduceOp::kMax : ReduceOp::kMin;
      stores.push_back(std::make_shared<Store>(block.out, indices, IntConst(0, block.out->dtype)));
      stores.push_back(
          std::make_shared<Store>(block.arg_value, indices, ReduceIdentity(best, block.arg_value->dtype)));
    } else {
      stores.push_back(
          std::make_shared<Store>(block.out, indices, ReduceIdentity(block.reduce, block.out->dtype)));
    }
    return Guarded(block, /*with_reduce=*/false, MakeSeq(std::move(stores)));
  }

  std::vector<Enclosing> loops_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Stmt> LowerBlocks(const Stmt& body) {
  BlockLowering lowering;
  Stmt lowered = lowering.Lower(body);
  if (!lowering.status().ok()) return lowering.status();
  return lowered;
}

}  // namespace mycc
