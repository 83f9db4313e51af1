// Copies of statements under other names, and with variables replaced. Pure functions.
#pragma once

#include <string>

#include "codegen/ir/stmt.h"

namespace mycc {

// The same statement with loops and buffers of its own, called after the old ones with `suffix`: a second
// copy beside the first.
Stmt CopyWithSuffix(const Stmt& stmt, const std::string& suffix);

// Variables replaced, and the expressions that used one in canonical form again.
Stmt SubstituteSimplified(const Stmt& stmt, const VarMap& map);

}  // namespace mycc
