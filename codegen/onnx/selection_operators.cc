// TopK, OneHot, and the table of the family.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/data_sized_operators.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"

namespace mycc::onnx {
namespace {

// The extent of axis `axis` of output 0, which input `i` tells: a constant of one element, or else what the
// model declares for an output of its own.
absl::StatusOr<int64_t> ExtentFrom(const NodeImport& n, size_t i, int64_t axis) {
  if (const NDArray* value = n.Value(i)) {
    if (value->num_elements() != 1)
      return n.Refuse(absl::StrCat("input ", i, " has ", value->num_elements(), " elements; expected 1"));
    const Scalar number = value->Get(0);
    return IsFloat(value->dtype) ? ConvertScalar(DType::kI64, value->dtype, number).i : number.i;
  }
  for (size_t output = 0; output < n.num_outputs(); ++output) {
    const std::vector<int64_t>* declared = n.DeclaredShape(output);
    if (declared != nullptr && axis < static_cast<int64_t>(declared->size())) return (*declared)[axis];
  }
  return n.NotKnown(i);
}

// Up to opset 9, k is an attribute.
absl::Status TopK(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(n.HasAttribute("k") ? 1 : 2));
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesNumbers));
  const Buffer x = n.In(0);
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.Int("axis", -1), n.Rank(0)));
  int64_t k = n.Int("k", 0);
  if (!n.HasAttribute("k")) {
    MYCC_ASSIGN_OR_RETURN(k, ExtentFrom(n, 1, axis));
  }
  std::vector<int64_t> shape = x->shape;
  if (k < 0 || k > shape[axis]) return n.Refuse(absl::StrCat("k is ", k, "; expected 0 to ", shape[axis]));
  shape[axis] = k;
  const int64_t is_largest = n.Int("largest", 1) != 0;
  const std::vector<Buffer> best =
      n.g().Call("top_k", {axis, is_largest}, {x}, {{x->dtype, shape}, {DType::kI64, shape}});
  n.Set(0, best[0], n.Typed(0).type);
  n.Set(1, best[1]);
  return absl::OkStatus();
}

// Indices count from the end when they are negative; those outside give a row of the off value.
absl::Status OneHot(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(3));
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesNumbers));
  const Buffer indices = n.In(0), values = n.In(2);
  if (values->shape != std::vector<int64_t>{2})
    return n.Refuse(absl::StrCat("input 2 is ", TypeText(values), "; expected two elements"));
  MYCC_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.Int("axis", -1), n.Rank(0) + 1));
  MYCC_ASSIGN_OR_RETURN(const int64_t depth, ExtentFrom(n, 1, axis));
  if (depth < 0) return n.Refuse(absl::StrCat("the depth is ", depth, "; expected 0 or more"));
  std::vector<int64_t> shape = indices->shape;
  shape.insert(shape.begin() + axis, depth);
  const Buffer hot = n.g().Map(shape, [&](const Axes& axes) {
    Axes others = axes;
    others.erase(others.begin() + axis);
    const Expr index = Load(indices, others),
               wide = index->dtype == DType::kI64 ? index : MakeCast(DType::kI64, index);
    const Expr is_hot = MakeBinary(Op::kOr, MakeBinary(Op::kEq, wide, axes[axis]),
                                   MakeBinary(Op::kEq, wide, axes[axis] - depth));
    return MakeSelect(is_hot, Load(values, {IntConst(1)}), Load(values, {IntConst(0)}));
  });
  n.Set(0, hot, n.Typed(2).type);
  return absl::OkStatus();
}

constexpr Operator kSelectionTable[] = {
    {"Compress", Compress, 9},
    {"NonMaxSuppression", NonMaxSuppression, 10},
    {"NonZero", NonZero, 9},
    {"OneHot", OneHot, 9},
    {"TopK", TopK},
    {"Unique", Unique, 11},
};

}  // namespace

std::span<const Operator> SelectionOperators() { return kSelectionTable; }

}  // namespace mycc::onnx
