// Questions that passes and back ends ask about a statement: how much it does, which reduction a store is.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>

#include "codegen/ir/stmt.h"

namespace mycc {

// Statements that do work (stores and tile statements).
int64_t CountLeaves(const Stmt& stmt);

// The reduction that a store is, s = s (op) value, as lowering leaves it; kNone for others.
ReduceOp ReductionOf(const Store& store);

// The variables of the loops in asynchronous copies. Conditions there are the edges that whoever carries the
// copy out knows of, and stay where they are.
std::unordered_set<const VarNode*> LoopVarsInCopies(const Stmt& body);

// A constant extent, or nullopt.
std::optional<int64_t> ConstExtent(const For& loop);

}  // namespace mycc
