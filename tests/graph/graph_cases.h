// Small graphs for tests, and the comparison of what two graphs compute. Pure, but for the expectations.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codegen/graph/builder.h"

namespace mycc {

inline Expr Number32(double value) { return FloatConst(value, DType::kF32); }

// A constant of numbers in [-1, 1] that differ.
Buffer Weights(GraphBuilder* builder, std::vector<int64_t> shape, int seed = 1);

// A convolution of 3x3 with the image padded by one: x[n,c,h,w] with w[k,c,3,3].
Buffer Conv3x3(GraphBuilder* builder, const Buffer& x, int64_t filters);
// x[m,k] times a constant of [k,n].
Buffer Product(GraphBuilder* builder, const Buffer& x, int64_t columns);
// max(x + bias, 0): two stages; the bias runs over dimension `channel`.
Buffer BiasAndRelu(GraphBuilder* builder, const Buffer& x, int channel);
// A stage that reads x[..] at its own axes and applies an operation of one operand.
Buffer Unary(GraphBuilder* builder, Op op, const Buffer& x);
Buffer Sum(GraphBuilder* builder, const Buffer& a, const Buffer& b);
// Dimension i of the result is dimension permutation[i] of x.
Buffer Transposed(GraphBuilder* builder, const Buffer& x, const std::vector<int>& permutation);
// Over the last dimension: the maximum, the exponentials, their sum, the quotients.
Buffer Softmax(GraphBuilder* builder, const Buffer& x);

std::vector<NDArray> RandomValues(const Graph& graph, uint64_t seed);
// Both graphs are sound, and give the same bytes for the same random inputs.
void ExpectSameResults(const Graph& before, const Graph& after);
// Both graphs are sound, and give numbers that differ by at most `bound`, or by that part of a number
// above 1.
void ExpectCloseResults(const Graph& before, const Graph& after, double bound);

// How many of the nodes are stages.
int64_t CountStages(const Graph& graph);

}  // namespace mycc
