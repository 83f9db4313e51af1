// The expressions, variables and buffers of statements: reading and replacing them. Pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/ir/stmt.h"

namespace mycc {

// The same statement with every expression in it (not in its children) mapped; `map` returns its argument to
// keep it.
Stmt MapExprs(const Stmt& stmt, const std::function<Expr(const Expr&)>& map);
// MapExprs over the whole tree.
Stmt MapAllExprs(const Stmt& root, const std::function<Expr(const Expr&)>& map);
// Every expression of this one statement, and every load in them.
void ForEachExpr(const Stmt& stmt, const std::function<void(const Expr&)>& visit);
void ForEachLoad(const Stmt& stmt, const std::function<void(const ExprNode&)>& visit);
// Every buffer that this one statement reads or writes; a buffer may be visited several times.
void ForEachBuffer(const Stmt& stmt, const std::function<void(const Buffer&)>& visit);
// Every buffer that a statement and those inside it read or write.
BufferSet BuffersUnder(const Stmt& root);
// Whether this one statement uses the variable, or the buffer.
bool UsesVar(const Stmt& stmt, const VarNode* var);
bool Accesses(const Stmt& stmt, const Buffer& buffer);
Stmt SubstituteVars(const Stmt& root, const VarMap& map);
// The same, and simplifies the expressions that used one of the variables.
Stmt SubstituteSimplified(const Stmt& root, const VarMap& map);
// Replaces a buffer everywhere (allocs, loads, stores, tile views, blocks); `to` has the same shape unless
// `reindex` is given, which maps index vectors. REQUIRES where there is a tile view of `from`: its strides
// hold in `to`, which has at most further dimensions before those of `from`.
Stmt ReplaceBuffer(const Stmt& root, const Buffer& from, const Buffer& to,
                   const std::function<std::vector<Expr>(const std::vector<Expr>&)>& reindex = nullptr);
// A second copy of the statement, with loops and buffers of its own; their names are the old ones with
// `suffix`.
Stmt CopyWithSuffix(const Stmt& stmt, const std::string& suffix);

}  // namespace mycc
