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
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/accumulators.h"
#include "codegen/ir/block_guards.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/schedule/tree.h"

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
    parts.push_back(loop.With({.body = std::move(body)}));
    return MakeSeq(std::move(parts));
  }

  absl::Status status() const { return status_; }

 private:
  struct Enclosing {
    const For* loop;
    std::vector<Stmt> before;  // initialisations to be placed just before this loop
  };

  // `stmt` under the condition that all bindings lie in their domains; for an initialisation, only those that
  // do not change during the reduction.
  static Stmt Guarded(const Block& block, bool with_reduce, Stmt stmt) {
    Expr guard = BoolConst(true);
    for (const IterVar& iter : block.iters) {
      if (!with_reduce && FollowsReduction(block, iter.binding)) continue;
      guard = MakeBinary(Op::kAnd, guard, Within(Simplify(iter.binding), iter.var->extent));
    }
    if (IsConstInt(guard, 1)) return stmt;
    return std::make_shared<If>(guard, std::move(stmt));
  }

  Stmt LowerBlock(const Block& block) {
    const VarMap bindings = BindingsOf(block);
    ReducedTuple reduced = ReducedBy(block);
    reduced.indices = SimplifiedAt(block.indices, bindings);
    reduced.values = SimplifiedAt(reduced.values, bindings);
    Stmt update;
    if (block.reduce == ReduceOp::kNone) {
      update = std::make_shared<Store>(block.out, reduced.indices, reduced.values[0]);
    } else if (block.reduce.tuple() != nullptr) {
      update = TupleUpdate(block, reduced);
    } else {
      update = UpdateAccumulators(reduced);
    }
    update = Guarded(block, /*with_reduce=*/true, std::move(update));
    return block.init ? AddInit(block, reduced, std::move(update)) : update;
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

  // Whether threads of different iterations of a thread loop reduce into the same element.
  bool IsCarriedByThreads(const Block& block) const {
    return std::ranges::any_of(loops_, [&](const Enclosing& around) {
      return around.loop->loop_kind == LoopKind::kThread && CarriesReduction(block, *around.loop);
    });
  }

  // A tuple's update by one thread is a store for each part. An update by several threads stays a block,
  // which the pass split_thread_reductions takes apart.
  Stmt TupleUpdate(const Block& block, ReducedTuple reduced) const {
    if (IsCarriedByThreads(block)) {
      auto update = std::make_shared<Block>(block);
      update->iters.clear();
      update->init = false;
      update->indices = reduced.indices;
      update->value = reduced.values[0];
      for (size_t i = 1; i < reduced.values.size(); ++i) update->more[i - 1].value = reduced.values[i];
      return update;
    }
    for (size_t i = 0; i < reduced.values.size(); ++i) {
      const Expr& value = reduced.values[i];
      const Expr& place = value->op == Op::kCast ? value->args[0] : value;
      if (place->dtype == DType::kI64 && Ascends(place))
        reduced.reduce = reduced.reduce.InOrder(static_cast<int>(i));
    }
    return UpdateAccumulators(reduced);
  }

  Stmt AddInit(const Block& block, const ReducedTuple& reduced, Stmt update) {
    VarSet reduce_vars, spatial_vars;
    for (const IterVar& iter : block.iters) {
      if (!iter.reduce && FollowsReduction(block, iter.binding)) continue;  // guards terms of the reduction
      Visit(iter.binding, [&](const ExprNode& e) {
        if (e.op == Op::kVar) (iter.reduce ? reduce_vars : spatial_vars).insert(e.var.get());
      });
    }
    size_t outermost = 0;
    while (outermost < loops_.size() && !reduce_vars.count(loops_[outermost].loop->var.get())) ++outermost;
    Stmt init = Guarded(block, /*with_reduce=*/false, StartAccumulators(reduced));
    if (outermost == loops_.size()) return MakeSeq({std::move(init), std::move(update)});

    VarMap renamed;
    for (size_t i = loops_.size(); i-- > outermost;) {
      const For& loop = *loops_[i].loop;
      if (!spatial_vars.count(loop.var.get())) continue;
      if (reduce_vars.count(loop.var.get())) {
        status_.Update(
            Refusal("loop ", loop.var->name, " carries both a reduction and an axis of block ", block.name));
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
