// The common parts of operators on quantized tensors. Internal to this folder. Thread rule: pure functions.
#pragma once

#include <optional>

#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

// The values of a quantized integer type; nullopt for other types.
struct QuantizedRange {
  int64_t lowest, highest;
};
std::optional<QuantizedRange> QuantizedRangeOf(int type);

// Whether a zero point is known to be 0 everywhere, or left out.
bool IsZero(const GraphBuilder& g, const Buffer& zero_point);

// A quotient by a scale as an element of a quantized integer type: rounded, moved by the zero point (null:
// 0), and saturated. Arithmetic is in f32.
Expr QuantizedInteger(const Expr& quotient, const Expr& zero_point, int type);

// The sums of a product of quantized tensors, as elements of a quantized type, integer or 8-bit float. The
// scales of the operands and of the result, and the result's zero point, are broadcast to the sums.
struct ProductScales {
  Buffer a, b, result;
  Buffer zero_point;
};
Buffer Requantized(GraphBuilder& g, const Buffer& sums, const ProductScales& scales, int type);

}  // namespace mycc::onnx
