// The passes of optimize.cc, one file each. A pass keeps the values of all outputs, but for
// MixPrecision. Pure functions.
#pragma once

#include "codegen/graph/graph.h"
#include "codegen/target/target.h"

namespace mycc {

// A read of a constant with one element becomes a literal, and arithmetic on literals is folded.
Graph InlineConstants(Graph graph, const Target& target);

// Arithmetic in fewer or cheaper operations.
Graph Simplify(Graph graph, const Target& target);

// Nodes that compute the same become one.
Graph MergeCommonNodes(Graph graph, const Target& target);

// Reshapes of moved elements become moves of what is in front of them.
Graph FindViews(Graph graph, const Target& target);

// Numbers that multiply an operand of a product multiply its result.
Graph MoveProductFactors(Graph graph, const Target& target);

// Reshapes that only add or drop dimensions of one element move behind element-wise stages.
Graph MoveUnitReshapes(Graph graph, const Target& target);

// Reshapes of the rows of a product move behind element-wise stages.
Graph MoveRowReshapes(Graph graph, const Target& target);

// Factors of channels go into constant weights, and shifts become one: batch normalization into convolution.
Graph FoldScales(Graph graph, const Target& target);

// Products of one tensor with matrices of one shape become one product.
Graph MergeProducts(Graph graph, const Target& target);

// Images are stored with channels last, around every convolution.
Graph ChooseChannelsLast(Graph graph, const Target& target);

// Readers of a stage that only moves elements read its source instead.
Graph InlineMoves(Graph graph, const Target& target);

// The stage in front of a transpose stores its result transposed.
Graph PushTransposes(Graph graph, const Target& target);

// Removes stages and reshapes that move nothing.
Graph RemoveCopies(Graph graph, const Target& target);

// Products take narrow operands, bf16 or f16, and accumulate in f32; what is safe between kernels is stored
// narrow. The values of outputs change by rounding.
Graph MixPrecision(Graph graph, DType narrow);

// Removes what no output needs.
Graph DropDeadNodes(Graph graph, const Target& target);

}  // namespace mycc
