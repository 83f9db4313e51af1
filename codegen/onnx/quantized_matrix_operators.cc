// Matrix products of quantized tensors: sums of products of integers in i32, then scaled.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"
#include "codegen/onnx/quantization.h"
#include "codegen/onnx/small_types.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

// The operands of a matrix product as stacks of matrices, and the result's shape: with, and without, the axes
// that vectors were given.
struct StackedProduct {
  TypedTensor a, b;
  Buffer a_zero, b_zero;  // broadcast to the result; null: 0
  std::vector<int64_t> shape, result_shape;
  int64_t depth = 0;
};

// The stacks, from inputs `a` and `b`.
absl::StatusOr<StackedProduct> StackOperands(NodeImport& n, size_t a, size_t b) {
  MYCC_RETURN_IF_ERROR(n.ExpectRank(a, 1, 16));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(b, 1, 16));
  std::vector<int64_t> left = n.Shape(a), right = n.Shape(b);
  if (n.Rank(a) == 1) left.insert(left.begin(), 1);
  if (n.Rank(b) == 1) right.push_back(1);
  if (left.back() != right[right.size() - 2]) {
    return n.Refuse(absl::StrCat("multiplies ", TypeText(n.In(a)), " by ", TypeText(n.In(b)),
                                 "; expected as many columns as rows"));
  }
  StackedProduct product;
  product.depth = left.back();
  const std::vector<int64_t> left_outer(left.begin(), left.end() - 2),
      right_outer(right.begin(), right.end() - 2);
  MYCC_ASSIGN_OR_RETURN(product.shape, BroadcastShape({left_outer, right_outer}));
  product.result_shape = product.shape;
  if (n.Rank(a) > 1) product.result_shape.push_back(left[left.size() - 2]);
  if (n.Rank(b) > 1) product.result_shape.push_back(right.back());
  product.shape.push_back(left[left.size() - 2]);
  product.shape.push_back(right.back());
  if (const std::string problem = ShapeProblem(product.shape); !problem.empty())
    return n.Refuse(absl::StrCat("the product is ", problem));
  product.a = {n.g().AddReshape(n.In(a), left), n.Typed(a).type};
  product.b = {n.g().AddReshape(n.In(b), right), n.Typed(b).type};
  return product;
}

// A scale or zero point, broadcast to the product. Those of `a` and of the result may be one for each row,
// those of `b` one for each column.
absl::StatusOr<Buffer> ParameterOfProduct(NodeImport& n, size_t i, bool of_rows,
                                          const StackedProduct& product) {
  if (!n.Has(i)) return Buffer();
  const Buffer parameter = n.In(i);
  if (parameter->num_elements() == 1) return n.g().AddReshape(parameter, {});
  std::vector<int64_t> shape = parameter->shape;
  if (of_rows && shape.size() == 1) shape.push_back(1);
  bool fits = shape.size() == 1 || (shape.size() > 1 && shape[shape.size() - (of_rows ? 1 : 2)] == 1);
  if (const auto all = BroadcastShape({shape, product.shape}); !all.ok() || *all != product.shape)
    fits = false;
  if (!fits) {
    return n.Refuse(absl::StrCat("input ", i, " is ", TypeText(parameter),
                                 "; expected one number, or one for each ", of_rows ? "row" : "column",
                                 " of the product ", ShapeText(product.shape)));
  }
  return n.g().AddReshape(parameter, shape);
}

// The element of an operand at the axes of the product: its stack is broadcast.
Expr OperandAt(const Buffer& operand, const Axes& axes, const Expr& row, const Expr& column) {
  Axes at(axes.end() - static_cast<int64_t>(operand->shape.size()), axes.end());
  for (size_t i = 0; i + 2 < at.size(); ++i) {
    if (operand->shape[i] == 1) at[i] = IntConst(0);
  }
  at[at.size() - 2] = row;
  at[at.size() - 1] = column;
  return Load(operand, std::move(at));
}

// The sums of products: of integers less their zero points in i32, of floats in f32.
Buffer SumsOfProducts(GraphBuilder& g, const StackedProduct& product) {
  const bool of_integers = QuantizedRangeOf(product.a.type) && QuantizedRangeOf(product.b.type);
  const DType dtype = of_integers ? DType::kI32 : DType::kF32;
  const auto decode_a = Decoder(g, product.a.type), decode_b = Decoder(g, product.b.type);
  const bool a_is_zero = !of_integers || IsZero(g, product.a_zero);
  const bool b_is_zero = !of_integers || IsZero(g, product.b_zero);
  return g.Reduce(ReduceOp::kSum, product.shape, {product.depth}, [&](const Axes& axes, const Axes& r) {
    const Expr row = axes[axes.size() - 2], column = axes[axes.size() - 1];
    const auto zero = [&](const Buffer& zero_point) {
      return MakeCast(dtype, zero_point->num_elements() == 1 ? OnlyElement(g, zero_point)
                                                             : BroadcastLoad(zero_point, axes));
    };
    Expr a = MakeCast(dtype, decode_a(OperandAt(product.a.tensor, axes, row, r[0])));
    Expr b = MakeCast(dtype, decode_b(OperandAt(product.b.tensor, axes, r[0], column)));
    if (!a_is_zero) a = a - zero(product.a_zero);
    if (!b_is_zero) b = b - zero(product.b_zero);
    return a * b;
  });
}

absl::Status ExpectBytes(const NodeImport& n, size_t i, bool or_float8) {
  const int type = n.Typed(i).type;
  if (type == kInt8 || type == kUint8 || (or_float8 && IsFloat8Type(type))) return absl::OkStatus();
  return n.Refuse(absl::StrCat("input ", i, " is of type ", ElementTypeName(type), "; expected INT8 or UINT8",
                               or_float8 ? ", or a float of 8 bits" : ""));
}

absl::Status ExpectSameType(const NodeImport& n, size_t i, size_t as) {
  if (!n.Has(i) || n.Typed(i).type == n.Typed(as).type) return absl::OkStatus();
  return n.Refuse(absl::StrCat("input ", i, " is of type ", ElementTypeName(n.Typed(i).type), "; expected ",
                               ElementTypeName(n.Typed(as).type), " as input ", as));
}

absl::Status MatMulInteger(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  for (size_t i : {0, 1}) {
    MYCC_RETURN_IF_ERROR(ExpectBytes(n, i, false));
    MYCC_RETURN_IF_ERROR(ExpectSameType(n, i + 2, i));
  }
  MYCC_ASSIGN_OR_RETURN(StackedProduct product, StackOperands(n, 0, 1));
  MYCC_ASSIGN_OR_RETURN(product.a_zero, ParameterOfProduct(n, 2, true, product));
  MYCC_ASSIGN_OR_RETURN(product.b_zero, ParameterOfProduct(n, 3, false, product));
  n.Set(0, n.g().AddReshape(SumsOfProducts(n.g(), product), product.result_shape));
  return absl::OkStatus();
}

// Inputs: a, its scale and zero point, b, its, and those of the result.
absl::Status QLinearMatMul(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(8));
  for (size_t i : {0, 3}) {
    MYCC_RETURN_IF_ERROR(ExpectBytes(n, i, true));
    MYCC_RETURN_IF_ERROR(ExpectSameType(n, i + 2, i));
  }
  MYCC_RETURN_IF_ERROR(ExpectBytes(n, 7, true));
  for (size_t i : {1, 4, 6}) MYCC_RETURN_IF_ERROR(ExpectTypes(n, i, kTakesFloats));
  MYCC_ASSIGN_OR_RETURN(StackedProduct product, StackOperands(n, 0, 3));
  MYCC_ASSIGN_OR_RETURN(product.a_zero, ParameterOfProduct(n, 2, true, product));
  MYCC_ASSIGN_OR_RETURN(product.b_zero, ParameterOfProduct(n, 5, false, product));
  ProductScales scales;
  MYCC_ASSIGN_OR_RETURN(scales.a, ParameterOfProduct(n, 1, true, product));
  MYCC_ASSIGN_OR_RETURN(scales.b, ParameterOfProduct(n, 4, false, product));
  MYCC_ASSIGN_OR_RETURN(scales.result, ParameterOfProduct(n, 6, true, product));
  MYCC_ASSIGN_OR_RETURN(scales.zero_point, ParameterOfProduct(n, 7, true, product));
  const int type = n.Typed(7).type;
  const Buffer result = Requantized(n.g(), SumsOfProducts(n.g(), product), scales, type);
  n.Set(0, n.g().AddReshape(result, product.result_shape), type);
  return absl::OkStatus();
}

constexpr Operator kQuantizedMatrixTable[] = {
    {"MatMulInteger", MatMulInteger, 10},
    {"QLinearMatMul", QLinearMatMul, 10},
};

}  // namespace

std::span<const Operator> QuantizedMatrixOperators() { return kQuantizedMatrixTable; }

}  // namespace mycc::onnx
