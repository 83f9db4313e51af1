// The facts that hold where conditions are known to be true or false. Thread rule: pure functions.
#pragma once

#include <vector>

#include "codegen/expr/range.h"

namespace mycc {

// Alternatives: at least one of them holds. Empty for a contradiction.
using FactCases = std::vector<Facts>;

// Each case of `known` with the facts of `condition` added: that it is true, or with `holds` == false that it
// is false.
FactCases Assume(const Expr& condition, bool holds, const FactCases& known);

}  // namespace mycc
