// Conversions between floats and quantized types: by tensor, by the indices of an axis, or by blocks along
// it.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/quantization.h"
#include "codegen/onnx/small_types.h"

namespace mycc::onnx {
namespace {

// Where the scale and the zero point of an element of input 0 stand.
struct Granularity {
  enum Kind { kTensor, kAxis, kBlocks } kind = kTensor;
  int64_t axis = 0, block = 1;

  Expr At(const GraphBuilder& g, const Buffer& parameter, Axes axes) const {
    if (kind == kTensor) return OnlyElement(g, parameter);
    if (kind == kAxis) return Load(parameter, {axes[axis]});
    axes[axis] = FloorDiv(axes[axis], block);
    return Load(parameter, std::move(axes));
  }
};

// One number for each index of the axis, or each block along it.
absl::StatusOr<Granularity> AlongAxis(const NodeImport& n, int64_t block) {
  const std::vector<int64_t>& shape = n.Shape(0);
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.Int("axis", 1), n.Rank(0)));
  std::vector<int64_t> expected = {shape[axis]};
  if (block > 0) {
    expected = shape;
    expected[axis] = shape[axis] / block + (shape[axis] % block != 0);
  }
  if (n.Shape(1) != expected) {
    return n.Refuse(absl::StrCat("the scale is ", TypeText(n.In(1)), "; expected the shape ",
                                 ShapeText(expected), " or one number"));
  }
  return Granularity{block > 0 ? Granularity::kBlocks : Granularity::kAxis, axis, block};
}

absl::StatusOr<Granularity> GranularityOf(const NodeImport& n) {
  const int64_t block = n.Int("block_size", 0);
  if (block < 0) return n.Refuse(absl::StrCat("block_size is ", block, "; expected 0 or more"));
  if (n.Has(2) && n.Shape(2) != n.Shape(1) &&
      (n.In(1)->num_elements() != 1 || n.In(2)->num_elements() != 1)) {
    return n.Refuse(absl::StrCat("the zero point is ", TypeText(n.In(2)), " and the scale ",
                                 TypeText(n.In(1)), "; expected one shape"));
  }
  if (n.In(1)->num_elements() == 1 && n.Rank(1) <= 1) return Granularity();
  return AlongAxis(n, block);
}

bool IsQuantizedType(int type) {
  return QuantizedRangeOf(type).has_value() || IsFloat8Type(type) || type == kFloat4E2M1;
}

bool IsScaledType(int type) { return type == kFloat || type == kFloat16 || type == kBfloat16; }

absl::Status ExpectScale(const NodeImport& n) {
  const int type = n.Typed(1).type;
  if (IsScaledType(type) || type == kFloat8E8M0 || (type == kInt32 && n.op() == "QuantizeLinear"))
    return absl::OkStatus();
  return n.Refuse(absl::StrCat("the scale is of type ", ElementTypeName(type),
                               "; expected FLOAT, FLOAT16, BFLOAT16 or FLOAT8E8M0"));
}

// A number of the type of an attribute; `otherwise` where it is 0 or not there.
absl::StatusOr<int> TypeAttribute(const NodeImport& n, const char* name, int otherwise) {
  const int64_t type = n.Int(name, 0);
  if (type == 0) return otherwise;
  if (type < 0 || type > kInt2) return n.Refuse(absl::StrCat(name, " is ", type, "; expected a type"));
  return static_cast<int>(type);
}

absl::StatusOr<int> QuantizedTypeOf(const NodeImport& n) {
  const int of_zero_point = n.Has(2) ? n.Typed(2).type : kUndefined;
  MYCC_ASSIGN_OR_RETURN(
      const int type, TypeAttribute(n, "output_dtype", of_zero_point == kUndefined ? kUint8 : of_zero_point));
  if (of_zero_point != kUndefined && type != of_zero_point) {
    return n.Refuse(absl::StrCat("output_dtype is ", ElementTypeName(type), " and the zero point is of type ",
                                 ElementTypeName(of_zero_point), "; expected one type"));
  }
  if (!IsQuantizedType(type))
    return n.Refuse(absl::StrCat("quantizes to ", ElementTypeName(type), "; expected a quantized type"));
  if (!StorageOf(type)) return n.NotSupported(absl::StrCat("quantization to ", ElementTypeName(type)));
  return type;
}

// The type of the division: the attribute's, that of both operands, or f32.
absl::StatusOr<DType> DivisionType(const NodeImport& n) {
  const bool is_one_float = n.Typed(0).type == n.Typed(1).type && IsScaledType(n.Typed(0).type);
  MYCC_ASSIGN_OR_RETURN(const int type,
                        TypeAttribute(n, "precision", is_one_float ? n.Typed(0).type : kFloat));
  if (!IsScaledType(type) && type != kDouble) {
    return n.Refuse(absl::StrCat("precision is ", ElementTypeName(type), "; expected a float"));
  }
  return *StorageOf(type);
}

absl::Status QuantizeLinear(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  const int from = n.Typed(0).type;
  if (!IsScaledType(from) && from != kInt32) {
    return n.Refuse(absl::StrCat("input 0 is of type ", ElementTypeName(from),
                                 "; expected FLOAT, FLOAT16, BFLOAT16 or INT32"));
  }
  MYCC_RETURN_IF_ERROR(ExpectScale(n));
  MYCC_ASSIGN_OR_RETURN(const int type, QuantizedTypeOf(n));
  MYCC_ASSIGN_OR_RETURN(const DType division, DivisionType(n));
  MYCC_ASSIGN_OR_RETURN(const Granularity granularity, GranularityOf(n));
  GraphBuilder& g = n.g();
  const auto decode = Decoder(g, n.Typed(1).type);
  const Buffer x = n.In(0), scale = g.Map(n.Shape(1), [&](const Axes&axes) {
    return MakeCast(division, decode(Load(n.In(1), axes)));
  });
  const auto quotient = [&](const Axes& axes) {
    return Quotient(MakeCast(division, Load(x, axes)), granularity.At(g, scale, axes));
  };
  if (!QuantizedRangeOf(type)) {
    Encoding encoding;
    encoding.saturate = n.Int("saturate", 1) != 0;
    const Buffer quotients = g.Map(x->shape, [&](const Axes& axes) {
      // Floats have no zero point but 0. It is added, for ONNX tells the zeros of this type apart.
      const Expr number = quotient(axes);
      return type == kFloat4E2M1 ? number + NumberLike(number, 0) : number;
    });
    n.Set(0, Encoded(g, quotients, type, encoding), type);
    return absl::OkStatus();
  }
  const bool is_zero = !n.Has(2) || IsZero(g, n.In(2));
  const Buffer result = g.Map(x->shape, [&](const Axes& axes) {
    return QuantizedInteger(quotient(axes), is_zero ? Expr() : granularity.At(g, n.In(2), axes), type);
  });
  n.Set(0, result, type);
  return absl::OkStatus();
}

// An element less its zero point, as f32. Integers of 32 bits are subtracted as such, for f32 does not hold
// them.
Expr LessZeroPoint(const Expr& element, const Expr& zero_point) {
  if (zero_point == nullptr) return MakeCast(DType::kF32, element);
  if (element->dtype == DType::kI32) return MakeCast(DType::kF32, element - zero_point);
  return MakeCast(DType::kF32, element) - MakeCast(DType::kF32, zero_point);
}

absl::Status DequantizeLinear(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  const int from = n.Typed(0).type;
  if (!IsQuantizedType(from) && from != kInt32) {
    return n.Refuse(
        absl::StrCat("input 0 is of type ", ElementTypeName(from), "; expected a quantized type or INT32"));
  }
  if (n.Has(2) && n.Typed(2).type != from) {
    return n.Refuse(absl::StrCat("the zero point is of type ", ElementTypeName(n.Typed(2).type),
                                 "; expected the input's, ", ElementTypeName(from)));
  }
  MYCC_RETURN_IF_ERROR(ExpectScale(n));
  MYCC_ASSIGN_OR_RETURN(const int type, TypeAttribute(n, "output_dtype", n.Typed(1).type));
  if (!IsScaledType(type)) {
    return n.Refuse(absl::StrCat("gives ", ElementTypeName(type),
                                 "; expected FLOAT, FLOAT16 or BFLOAT16 as output_dtype"));
  }
  MYCC_ASSIGN_OR_RETURN(const Granularity granularity, GranularityOf(n));
  GraphBuilder& g = n.g();
  const auto decode = Decoder(g, from), decode_scale = Decoder(g, n.Typed(1).type);
  const Buffer x = n.In(0), scale = g.Map(n.Shape(1), [&](const Axes&axes) {
    return MakeCast(DType::kF32, decode_scale(Load(n.In(1), axes)));
  });
  const bool has_zero_point = n.Has(2) && (QuantizedRangeOf(from) || from == kInt32) && !IsZero(g, n.In(2));
  n.Set(0, g.Map(x->shape, [&](const Axes& axes) {
    const Expr zero_point = has_zero_point ? granularity.At(g, n.In(2), axes) : Expr();
    const Expr number = LessZeroPoint(decode(Load(x, axes)), zero_point);
    return MakeCast(*StorageOf(type), number * granularity.At(g, scale, axes));
  }));
  return absl::OkStatus();
}

// The range of the elements, widened to hold 0, is mapped to 0..255.
absl::Status DynamicQuantizeLinear(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(1));
  if (n.Typed(0).type != kFloat)
    return n.Refuse(
        absl::StrCat("input 0 is of type ", ElementTypeName(n.Typed(0).type), "; expected FLOAT"));
  GraphBuilder& g = n.g();
  const Buffer x = n.In(0), flat = g.AddReshape(x, {x->num_elements()});
  const auto extreme = [&](ReduceOp op) {
    return g.Reduce(op, {}, flat->shape, [&](const Axes&, const Axes& r) { return Load(flat, r); });
  };
  const Buffer largest = extreme(ReduceOp::kMax), smallest = extreme(ReduceOp::kMin);
  const Expr zero = FloatConst(0, DType::kF32), full = FloatConst(255, DType::kF32);
  const Expr low = MakeBinary(Op::kMin, Load(smallest, {}), zero);
  const Buffer scale = g.Map({}, [&](const Axes&) {
    const Expr high = MakeBinary(Op::kMax, Load(largest, {}), zero);
    const Expr one = FloatConst(1, DType::kF32);
    return Quotient(MakeSelect(MakeBinary(Op::kEq, high, low), one, high - low), full);
  });
  const Buffer zero_point = g.Map({}, [&](const Axes&) {
    const Expr exact = ClampTo(zero - Quotient(low, OnlyElement(g, scale)), zero, full);
    return MakeCast(DType::kU8, MakeUnary(Op::kRound, exact));
  });
  n.Set(0, g.Map(x->shape, [&](const Axes& axes) {
    return QuantizedInteger(Quotient(Load(x, axes), OnlyElement(g, scale)), OnlyElement(g, zero_point),
                            kUint8);
  }));
  n.Set(1, scale);
  n.Set(2, zero_point);
  return absl::OkStatus();
}

constexpr Operator kQuantizationTable[] = {
    {"DequantizeLinear", DequantizeLinear, 10},
    {"DynamicQuantizeLinear", DynamicQuantizeLinear, 11},
    {"QuantizeLinear", QuantizeLinear, 10},
};

}  // namespace

std::span<const Operator> QuantizationOperators() { return kQuantizationTable; }

}  // namespace mycc::onnx
