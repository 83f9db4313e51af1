// Evaluates the parts of expressions that work on numbers alone, many times faster than the general way: a
// constraint is evaluated for millions of configurations.
#pragma once

#include <vector>

#include "laboratory/expression.h"

namespace mycc {

// Marks the nodes that EvaluateScalar may be asked for. Children stand before their parents.
void MarkScalars(std::vector<ExpressionNode>* nodes);

// The value of a marked node. False: it is no number, or an error; the general evaluation tells.
bool EvaluateScalar(const std::vector<ExpressionNode>& nodes, int node,
                    const ExpressionEnvironment& environment, PythonValue* value);

}  // namespace mycc
