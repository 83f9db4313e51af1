// The common parts of operators that move elements: literals of any type, reads by indices that are tensors,
// and tensors joined along an axis. Internal to this folder. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

// A number that was read from a constant of this type.
Expr LiteralOf(DType dtype, const Scalar& number);

// Refuses a shape beyond the limits of the language: `what` is "gives", "is padded to".
absl::Status ExpectSoundShape(const NodeImport& n, const std::string& what,
                              const std::vector<int64_t>& shape);

// The indices of elements of the source, in terms of the axes of the result.
using IndexFunction = std::function<Axes(const Axes&)>;
// The tensor of this shape that takes each element from the source, which must have elements if the result
// has.
Buffer Moved(GraphBuilder& g, const Buffer& source, const std::vector<int64_t>& shape,
             const IndexFunction& indices);
// The same where the axes of the result are axes of the source in another order.
Buffer Permuted(GraphBuilder& g, const Buffer& source, const std::vector<int64_t>& order);
// Elements first, first + step, ... of one axis.
Buffer Sliced(GraphBuilder& g, const Buffer& source, int64_t axis, int64_t first, int64_t step,
              int64_t count);
// Tensors of one type and of shapes that differ along the axis alone. REQUIRES: at least one.
Buffer Joined(GraphBuilder& g, std::vector<Buffer> parts, int64_t axis);
// Tensors of one type and shape, along a new axis. REQUIRES: at least one.
Buffer Stacked(GraphBuilder& g, std::vector<Buffer> parts, int64_t axis);
// The tensor in the shape that a caller knows to have as many elements.
Buffer WithAxis(GraphBuilder& g, const Buffer& source, int64_t axis);
Buffer WithoutAxis(GraphBuilder& g, const Buffer& source, int64_t axis);

// Makes of an element of a tensor of indices, by its place, an index of an axis.
using IndexRead = std::function<Expr(const Axes&)>;
// Indices into an axis of `extent` elements, which must not be 0; negative ones count from its end. Known
// ones outside of the axis are refused, others clamped. `i` is the number of the input that holds them.
absl::StatusOr<IndexRead> IndicesOf(NodeImport& n, size_t i, const Buffer& indices, int64_t extent);

}  // namespace mycc::onnx
