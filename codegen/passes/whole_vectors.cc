// Splits a vector loop under conditions that differ between lanes into a loop for whole vectors, with vector
// loads and stores, and a loop that tests lane by lane.
//
//   vector v in 4:                         if i*4 + 3 < 250: vector v in 4: y[i*4 + v] = f(x[i*4 + v])
//     if i*4 + v < 250:               ->   else: vector v in 4:
//       y[i*4 + v] = f(x[i*4 + v])           if i*4 + v < 250: y[i*4 + v] = f(x[i*4 + v])
//
// When all lanes always agree (i*4 + v < 248), the condition of the first lane is enough.
#include <algorithm>
#include <optional>
#include <vector>

#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/lanes.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// A condition over lanes, and the lane whose condition implies that of all lanes.
struct LaneCondition {
  Expr condition;
  Expr whole;   // true when the condition is true in all lanes
  bool agrees;  // when `whole` is false, the condition is false in all lanes
};

// nullopt when no lane's condition implies the others.
std::optional<LaneCondition> DecideForAll(const Expr& condition, const Var& lane) {
  const Expr margin = MarginOf(condition);
  if (margin == nullptr) return std::nullopt;
  const auto split = SplitLinear(Simplify(margin), lane.get());
  if (!split || split->coefficient == 0) return std::nullopt;
  const Expr least = IntConst(split->coefficient > 0 ? 0 : lane->extent - 1);
  return LaneCondition{condition, Simplify(Substitute(condition, {{lane.get(), least}})),
                       LanesAgree(condition, lane.get(), lane->extent)};
}

class VectorLoop {
 public:
  explicit VectorLoop(const For& loop) : loop_(loop) {
    ForEachStmt(loop.body, [&](const Stmt& stmt) {
      if (const If* branch = DynAs<If>(stmt)) Collect(branch->condition);
      ForEachExpr(stmt, [&](const Expr& expr) {
        Visit(expr, [&](const ExprNode& e) {
          if (e.op == Op::kSelect) Collect(e.args[0]);
        });
      });
    });
  }

  Stmt Run() const {
    if (!possible_ || conditions_.empty()) return nullptr;
    if (std::ranges::all_of(conditions_, &LaneCondition::agrees))
      return Rebuilt([](const LaneCondition& decided) { return decided.whole; });
    Expr whole = BoolConst(true);
    for (const LaneCondition& decided : conditions_) whole = MakeBinary(Op::kAnd, whole, decided.whole);
    if (!MovesMemory() || IsConstInt(whole, int64_t{0})) return nullptr;
    const Stmt all = Rebuilt([](const LaneCondition&) { return BoolConst(true); });
    return std::make_shared<If>(whole, CleanStmts(all), CopyWithSuffix(loop_.With({}), ".lane"));
  }

 private:
  void Collect(const Expr& condition) {
    for (const Expr& part : SplitConjunction(condition)) {
      if (!UsesVar(part, loop_.var.get())) continue;
      const auto decided = DecideForAll(part, loop_.var);
      possible_ &= decided.has_value();
      if (decided) conditions_.push_back(*decided);
    }
  }

  // The loop with each condition replaced.
  template <typename ChooseFn>
  Stmt Rebuilt(const ChooseFn& choose) const {
    const Stmt body = MapAllExprs(loop_.body, [&](const Expr& expr) {
      return Rewrite(expr, [&](const Expr& e) -> Expr {
        for (const LaneCondition& decided : conditions_) {
          if (StructurallyEqual(e, decided.condition)) return choose(decided);
        }
        return nullptr;
      });
    });
    return loop_.With({.body = SimplifyStmts(body)});
  }

  // Whether some access to memory is contiguous along the lanes, and aligned to at least two elements.
  bool MovesMemory() const {
    bool moves = false;
    const auto check = [&](const BufferNode& buffer, const std::vector<Expr>& indices) {
      if (IsInRegisters(buffer)) return;
      const auto flat = SplitLinear(Simplify(FlatIndex(buffer, indices)), loop_.var.get());
      moves |= flat && flat->coefficient == 1 && DivisorOf(flat->rest) % 2 == 0;
    };
    ForEachStmt(loop_.body, [&](const Stmt& stmt) {
      if (const Store* store = DynAs<Store>(stmt)) check(*store->buffer, store->indices);
      ForEachLoad(stmt, [&](const ExprNode& load) { check(*load.buffer, load.args); });
    });
    return moves;
  }

  const For& loop_;
  bool possible_ = true;
  std::vector<LaneCondition> conditions_;
};

}  // namespace

Stmt SplitWholeVectors(const Stmt& body) {
  const VarSet in_copies = LoopVarsInCopies(body);
  return RewriteEach<For>(body, [&](const For& loop) -> Stmt {
    if (loop.loop_kind != LoopKind::kVector || in_copies.contains(loop.var.get()) ||
        ConstExtent(loop) != loop.var->extent || Contains(loop.body, StmtKind::kFor))
      return nullptr;
    return VectorLoop(loop).Run();
  });
}

}  // namespace mycc
