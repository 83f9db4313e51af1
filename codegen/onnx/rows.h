// Reductions over axes of one tensor, and the types that they are computed in: what reductions, softmax and
// the normalizations share. Internal to this folder. Thread rule: pure functions.
#pragma once

#include <functional>
#include <vector>

#include "codegen/graph/builder.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

// f32 for floats of less than 32 bits; other types are their own.
DType WideTypeOf(DType dtype);
// An expression of a float as it is computed with.
Expr Wide(const Expr& x);

// A shape with extents of 1 at the axes, which are sorted.
std::vector<int64_t> KeptShape(std::vector<int64_t> shape, const std::vector<int64_t>& axes);
// How many elements the axes of a shape have together.
int64_t CountOver(const std::vector<int64_t>& shape, const std::vector<int64_t>& axes);
// The axes `first` to the last one.
std::vector<int64_t> AxesFrom(int64_t first, size_t rank);

// Reduces `value`, which is given for a tensor of `shape`, over sorted axes; these stay with extent 1, or are
// dropped. Without axes the result is the value.
Buffer ReduceOver(GraphBuilder& g, ReduceOp op, const std::vector<int64_t>& shape,
                  const std::vector<int64_t>& axes, bool keeps_axes,
                  const std::function<Expr(const Axes&)>& value);

}  // namespace mycc::onnx
