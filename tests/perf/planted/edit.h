// Parts that the classes of faults share: places in the code of a kernel, the code with something else at a
// place, and probes. Pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/perf/planted/fault.h"
#include "tests/perf/planted/kernel.h"

namespace mycc::planted {

// A statement and those around it, outermost first.
struct Place {
  Stmt stmt;
  std::vector<Stmt> around;

  const For* LoopOf(const VarNode* var) const;  // around it; null: none
  bool Within(StmtKind kind) const;
};
// Every statement of the kernel's and its packing code that `wanted` takes, once each, in order.
std::vector<Place> PlacesOf(const Kernel& kernel, const std::function<bool(const Place&)>& wanted);
std::vector<Place> PlacesOf(const Kernel& kernel, StmtKind kind);
std::vector<Place> Stores(const Kernel& kernel);

// Whether the buffer is an output of the kernel, or an input.
bool IsParam(const Kernel& kernel, const Buffer& buffer, bool output);
bool HasVariable(const Expr& expr);
// The distinct nodes of an expression that are `wanted`.
std::vector<const ExprNode*> NodesOf(const Expr& expr, const std::function<bool(const ExprNode&)>& wanted);

// The kernel's code with another statement there; null: with none.
LoweredFunction With(const Kernel& kernel, const Stmt& at, const Stmt& by);
Fault FaultAt(const Kernel& kernel, const Stmt& at, const Stmt& by);

// Whether a run of the kernel comes to the statement while the condition holds.
bool IsReached(const Kernel& kernel, const Stmt& at, const Expr& condition = BoolConst(true));

// The store with an expression in its value or its indices replaced.
Stmt StoreWith(const Store& store, const ExprNode* at, const Expr& by);
// The loop with another extent, or another body; of its own variable.
Stmt LoopLike(const For& loop, int64_t extent);

// The condition under which the value of an expression is what `node` in it makes of it: that the arms of
// selects around the node are taken.
Expr TakenWhere(const Expr& value, const ExprNode* node);
// The condition under which no select in the expression takes a constant arm.
Expr ReadsWhere(const Expr& value);

}  // namespace mycc::planted
