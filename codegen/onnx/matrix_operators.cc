// Matrix products of unquantized tensors. A right operand of rank 2 makes one product with all rows of the
// left one.
#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/onnx/convolution.h"
#include "codegen/onnx/elementwise.h"
#include "codegen/onnx/operators.h"
#include "codegen/workload/check.h"

namespace mycc::onnx {
namespace {

// The sums of a[.., row, depth] * b[.., depth, column] over stacks of matrices that are broadcast.
Buffer ProductOfStacks(GraphBuilder& g, const Buffer& a, const Buffer& b, const std::vector<int64_t>& shape) {
  const DType dtype = SumType(a->dtype);
  return g.Reduce(ReduceOp::kSum, shape, {a->shape.back()}, [&](const Axes& axes, const Axes& r) {
    const auto at = [&](const Buffer& operand, bool is_left) {
      Axes index(axes.end() - static_cast<int64_t>(operand->shape.size()), axes.end());
      for (size_t i = 0; i + 2 < index.size(); ++i) {
        if (operand->shape[i] == 1) index[i] = IntConst(0);
      }
      index[index.size() - (is_left ? 1 : 2)] = r[0];
      return MakeCast(dtype, Load(operand, std::move(index)));
    };
    return at(a, true) * at(b, false);
  });
}

// Rows of all matrices of the left operand, when the right one is one matrix.
std::vector<int64_t> AsRows(const std::vector<int64_t>& shape) {
  return {ElementsOf({shape.begin(), shape.end() - 1}), shape.back()};
}

absl::Status MatMul(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, 1, kTakesNumbers));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 1, 15));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(1, 1, 15));
  std::vector<int64_t> left = n.Shape(0), right = n.Shape(1);
  if (n.Rank(0) == 1) left.insert(left.begin(), 1);
  if (n.Rank(1) == 1) right.push_back(1);
  if (left.back() != right[right.size() - 2]) {
    return n.Refuse(absl::StrCat("multiplies ", TypeText(n.In(0)), " by ", TypeText(n.In(1)),
                                 "; expected as many columns as rows"));
  }
  const std::vector<int64_t> left_outer(left.begin(), left.end() - 2);
  const std::vector<int64_t> right_outer(right.begin(), right.end() - 2);
  MYCC_ASSIGN_OR_RETURN(std::vector<int64_t> shape, BroadcastShape({left_outer, right_outer}));
  std::vector<int64_t> result = shape;
  if (n.Rank(0) > 1) result.push_back(left[left.size() - 2]);
  if (n.Rank(1) > 1) result.push_back(right.back());
  shape.push_back(left[left.size() - 2]);
  shape.push_back(right.back());
  if (const std::string problem = ShapeProblem(shape); !problem.empty())
    return n.Refuse(absl::StrCat("the product is ", problem));
  if (ElementsOf(right_outer) == 1) {
    left = AsRows(left);
    right = {right[right.size() - 2], right.back()};
    shape = {left[0], right[1]};
  }
  GraphBuilder& g = n.g();
  const Buffer sums = ProductOfStacks(g, g.AddReshape(n.In(0), left), g.AddReshape(n.In(1), right), shape);
  n.Set(0, g.AddReshape(g.Cast(sums, n.Type(0)), result));
  return absl::OkStatus();
}

Expr Scaled(const Expr& x, double factor) { return factor == 1 ? x : x * NumberLike(x, factor); }

// alpha * a * b + beta * c.
absl::Status Gemm(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(n.Expect(2));
  MYCC_RETURN_IF_ERROR(ExpectOneType(n, 0, n.Has(2) ? 2 : 1, kTakesNumbers));
  for (size_t i : {0, 1}) MYCC_RETURN_IF_ERROR(n.ExpectRank(i, 2, 2));
  const bool a_is_transposed = n.Int("transA", 0) != 0, b_is_transposed = n.Int("transB", 0) != 0;
  const Buffer a = n.In(0), b = n.In(1);
  const int64_t depth = a->shape[a_is_transposed ? 0 : 1];
  if (depth != b->shape[b_is_transposed ? 1 : 0]) {
    return n.Refuse(absl::StrCat("multiplies ", TypeText(a), a_is_transposed ? " transposed" : "", " by ",
                                 TypeText(b), b_is_transposed ? " transposed" : "",
                                 "; expected as many columns as rows"));
  }
  const std::vector<int64_t> shape = {a->shape[a_is_transposed ? 1 : 0], b->shape[b_is_transposed ? 0 : 1]};
  if (const std::string problem = ShapeProblem(shape); !problem.empty())
    return n.Refuse(absl::StrCat("the product is ", problem));
  // Integers are scaled as floats.
  const double alpha = n.Float("alpha", 1), beta = n.Float("beta", 1);
  const DType dtype = SumType(a->dtype);
  const DType scaled = IsFloat(dtype) || (alpha == 1 && beta == 1) ? dtype : DType::kF64;
  Buffer sums = n.g().Reduce(ReduceOp::kSum, shape, {depth}, [&](const Axes& axes, const Axes& r) {
    const Expr x = a_is_transposed ? Load(a, {r[0], axes[0]}) : Load(a, {axes[0], r[0]});
    const Expr y = b_is_transposed ? Load(b, {axes[1], r[0]}) : Load(b, {r[0], axes[1]});
    return MakeCast(dtype, x) * MakeCast(dtype, y);
  });
  const bool adds = n.Has(2) && beta != 0;
  if (adds) {
    const auto all = n.Rank(2) <= 2 ? BroadcastShape({n.Shape(2), shape}) : absl::InvalidArgumentError("");
    if (!all.ok() || *all != shape) {
      return n.Refuse(absl::StrCat("adds ", TypeText(n.In(2)), "; expected a shape that is broadcast to ",
                                   ShapeText(shape)));
    }
  }
  if (!adds && alpha == 1) {
    n.Set(0, n.g().Cast(sums, a->dtype));
    return absl::OkStatus();
  }
  n.Set(0, n.g().Map(shape, [&](const Axes& axes) {
    Expr value = Scaled(MakeCast(scaled, Load(sums, axes)), alpha);
    if (adds) value = value + Scaled(MakeCast(scaled, BroadcastLoad(n.In(2), axes)), beta);
    return MakeCast(a->dtype, value);
  }));
  return absl::OkStatus();
}

constexpr Operator kMatrixTable[] = {
    {"Gemm", Gemm},
    {"MatMul", MatMul},
};

}  // namespace

std::span<const Operator> MatrixOperators() { return kMatrixTable; }

}  // namespace mycc::onnx
