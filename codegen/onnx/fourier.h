// Discrete Fourier transforms as stages. Internal to this folder. Thread rule: as GraphBuilder's.
#pragma once

#include "codegen/graph/builder.h"

namespace mycc::onnx {

struct FourierTransform {
  int64_t length = 0;  // at least 1
  bool is_inverse = false;
  bool is_one_sided =
      false;  // gives half of a spectrum; the inverse takes half of one and gives real numbers
};

// The extents of the transformed axis and of the parts of a number, 1 or 2, in the result.
int64_t TransformedExtent(const FourierTransform& transform);
int64_t TransformedParts(const FourierTransform& transform);

// Transforms axis 1 of x[outer, n, inner, parts] of f32 or f64, which is cut or filled up with zeros to the
// length. Short transforms are products with a table, long ones a library kernel.
Buffer Transformed(GraphBuilder& g, const Buffer& x, const FourierTransform& transform);

}  // namespace mycc::onnx
