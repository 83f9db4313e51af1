// Copies statements with other names, or with variables replaced. Pure functions.
#pragma once

#include <string>

#include "codegen/ir/stmt.h"

namespace mycc {

// A second copy of the statement, with loops and buffers of its own; their names are the old ones with
// `suffix`.
Stmt CopyWithSuffix(const Stmt& stmt, const std::string& suffix);

// Replaces variables, and simplifies the expressions that used one.
Stmt SubstituteSimplified(const Stmt& stmt, const VarMap& map);

}  // namespace mycc
