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

// The best element of an axis as stages, which run on GPUs too: values and indices.
std::vector<Buffer> BestElements(GraphBuilder& g, const Buffer& x, int64_t axis, bool is_largest) {
  std::vector<int64_t> shape = x->shape;
  shape[axis] = 1;
  const auto at = [axis](Axes axes, Expr place) {
    axes[axis] = std::move(place);
    return axes;
  };
  const ReduceOp op = is_largest ? ReduceOp::kArgMax : ReduceOp::kArgMin;
  const Buffer places = g.Reduce(op, shape, {x->shape[axis]},
                                 [&](const Axes& a, const Axes& r) { return Load(x, at(a, r[0])); });
  const Buffer values = g.Map(shape, [&](const Axes& a) {
    const Expr place = MakeCast(DType::kI64, Load(places, a));
    return Load(x, at(a, ClampTo(place, IntConst(0), IntConst(x->shape[axis] - 1))));
  });
  return {values, g.Cast(places, DType::kI64)};
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
  const bool is_largest = n.Int("largest", 1) != 0;
  // NaN is the best of floats for argmin too, and the last here.
  const bool is_reduction =
      k == 1 && x->shape[axis] < (int64_t{1} << 31) && (is_largest || !IsFloat(x->dtype));
  const std::vector<Buffer> best =
      is_reduction ? BestElements(n.g(), x, axis, is_largest)
                   : n.g().Call("top_k", {axis, is_largest}, {x}, {{x->dtype, shape}, {DType::kI64, shape}});
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
    {"Compress", Compress, 9, "", false, kTextFirst},
    {"NonMaxSuppression", NonMaxSuppression, 10},
    {"NonZero", NonZero, 9},
    {"OneHot", OneHot, 9},
    {"TopK", TopK},
    {"Unique", Unique, 11},
};

}  // namespace

std::span<const Operator> SelectionOperators() { return kSelectionTable; }

}  // namespace mycc::onnx
