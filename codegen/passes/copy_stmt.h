// Parts that the passes share when they copy or count statements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

#include "codegen/ir/stmt.h"

namespace mycc {

// The same statement with loops and buffers of its own, called after the old ones with `suffix`: a second
// copy beside the first.
Stmt CopyWithSuffix(const Stmt& stmt, const std::string& suffix);

// Variables replaced, and the expressions that used one in canonical form again.
Stmt SubstituteSimplified(const Stmt& stmt, const VarMap& map);

// Statements that do work (stores and tile statements).
int64_t CountLeaves(const Stmt& stmt);

// The parts of a conjunction, in order: a && b && c.
void SplitConjunction(const Expr& condition, std::vector<Expr>* parts);
Expr JoinConjunction(const std::vector<Expr>& parts);  // true for none

// The reduction that a store is, s = s (op) value, as lowering leaves it; kNone for others.
ReduceOp ReductionOf(const Store& store);

// The variables of the loops in asynchronous copies. Conditions there are the edges that whoever carries the
// copy out knows of, and stay where they are.
std::unordered_set<const VarNode*> LoopVarsInCopies(const Stmt& body);

// A constant extent, or nullopt.
std::optional<int64_t> ConstExtent(const For& loop);

}  // namespace mycc
