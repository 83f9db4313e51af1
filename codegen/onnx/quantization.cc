#include "codegen/onnx/quantization.h"

#include "base/check.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/small_types.h"

namespace mycc::onnx {

std::optional<QuantizedRange> QuantizedRangeOf(int type) {
  switch (type) {
    case kInt8: return QuantizedRange{-128, 127};
    case kUint8: return QuantizedRange{0, 255};
    case kInt16: return QuantizedRange{-32768, 32767};
    case kUint16: return QuantizedRange{0, 65535};
    case kInt4: return QuantizedRange{-8, 7};
    case kUint4: return QuantizedRange{0, 15};
    case kInt2: return QuantizedRange{-2, 1};
    case kUint2: return QuantizedRange{0, 3};
    default: return std::nullopt;
  }
}

bool IsZero(const GraphBuilder& g, const Buffer& zero_point) {
  if (zero_point == nullptr) return true;
  const NDArray* value = g.ValueOf(zero_point);
  if (value == nullptr) return false;
  for (int64_t i = 0; i < value->num_elements(); ++i) {
    const Scalar number = value->Get(i);
    if (number.i != 0 || number.f != 0) return false;
  }
  return true;
}

Expr QuantizedInteger(const Expr& quotient, const Expr& zero_point, int type) {
  const std::optional<QuantizedRange> range = QuantizedRangeOf(type);
  Expr value = MakeCast(DType::kF32, MakeUnary(Op::kRound, quotient));
  if (zero_point != nullptr) value = value + MakeCast(DType::kF32, zero_point);
  const auto limit = [&](int64_t number) { return NumberLike(value, static_cast<double>(number)); };
  return MakeCast(*StorageOf(type), ClampTo(value, limit(range->lowest), limit(range->highest)));
}

Buffer Requantized(GraphBuilder& g, const Buffer& sums, const ProductScales& scales, int type) {
  // One factor, which is known when the scales are.
  const auto shape = BroadcastShape({scales.a->shape, scales.b->shape, scales.result->shape});
  const Buffer factor = g.Map(*shape, [&](const Axes& axes) {
    const auto at = [&](const Buffer& scale) { return MakeCast(DType::kF32, BroadcastLoad(scale, axes)); };
    return Quotient(at(scales.a) * at(scales.b), at(scales.result));
  });
  const auto scaled = [&](const Axes& axes) {
    const Expr by = factor->num_elements() == 1 ? OnlyElement(g, factor) : BroadcastLoad(factor, axes);
    return MakeCast(DType::kF32, Load(sums, axes)) * by;
  };
  if (!QuantizedRangeOf(type)) return Encoded(g, g.Map(sums->shape, scaled), type, {});
  const bool is_zero = IsZero(g, scales.zero_point);
  return g.Map(sums->shape, [&](const Axes& axes) {
    const Buffer& zero = scales.zero_point;
    const auto zero_point = [&] {
      return zero->num_elements() == 1 ? OnlyElement(g, zero) : BroadcastLoad(zero, axes);
    };
    return QuantizedInteger(scaled(axes), is_zero ? Expr() : zero_point(), type);
  });
}

}  // namespace mycc::onnx
