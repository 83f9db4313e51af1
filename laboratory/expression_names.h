// Gives the names of a parsed expression their places in its environment.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "laboratory/expression.h"

namespace mycc {

// Sets the slots of the names below a node, and the parameters that each node uses. Parameters have the first
// slots, names of comprehensions those behind. Returns the number of slots. InvalidArgument "column 5: ..."
// for a name that is neither.
absl::StatusOr<int> ResolveNames(int root, const std::vector<std::string>& parameters,
                                 std::vector<ExpressionNode>* nodes);

}  // namespace mycc
