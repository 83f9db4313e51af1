// The accumulators of a reduction, one or several, and the stores that start and update them. Pure.
#pragma once

#include <vector>

#include "codegen/ir/stmt.h"

namespace mycc {

// A reduction: its accumulators, all at the same indices, and the values that are merged into them.
struct ReducedTuple {
  Reduction reduce;
  std::vector<Buffer> buffers;
  std::vector<Expr> indices;
  std::vector<Expr> values;
};
ReducedTuple ReducedBy(const Block& block);
ReducedTuple ReducedBy(const Combine& combine);

// Stores the identities into the accumulators.
Stmt StartAccumulators(const ReducedTuple& reduced);
// Merges the values into the accumulators: a store for each.
Stmt UpdateAccumulators(const ReducedTuple& reduced);
// The same by the threads together.
Stmt CombineAccumulators(const ReducedTuple& reduced);

}  // namespace mycc
