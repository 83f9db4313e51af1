// The expressions, variables and buffers of statements: reading and replacing them. Pure functions.
#pragma once

#include <functional>
#include <vector>

#include "codegen/ir/stmt.h"

namespace mycc {

// The same statement with every expression in it (not in its children) mapped; `map` returns its argument to
// keep it.
Stmt MapExprs(const Stmt& stmt, const std::function<Expr(const Expr&)>& map);
// MapExprs over the whole tree.
Stmt MapAllExprs(const Stmt& root, const std::function<Expr(const Expr&)>& map);
// Every expression of this one statement.
void ForEachExpr(const Stmt& stmt, const std::function<void(const Expr&)>& visit);
// Every buffer that this one statement reads or writes; a buffer may be visited several times.
void ForEachBuffer(const Stmt& stmt, const std::function<void(const Buffer&)>& visit);
Stmt SubstituteVars(const Stmt& root, const VarMap& map);
// Replaces a buffer everywhere (allocs, loads, stores, tile views, blocks); `to` has the same shape unless
// `reindex` is given, which maps index vectors. REQUIRES with `reindex`: no tile view of `from` (its strides
// are of the old layout).
Stmt ReplaceBuffer(const Stmt& root, const Buffer& from, const Buffer& to,
                   const std::function<std::vector<Expr>(const std::vector<Expr>&)>& reindex = nullptr);

}  // namespace mycc
