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

constexpr int64_t kLargestDeterminant = 64;  // rows; each is a few stages

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

// The determinant by elimination: each step takes the row with the largest first element from the others, and
// leaves matrices with one row and one column less.
absl::Status Det(NodeImport& n) {
  MYCC_RETURN_IF_ERROR(ExpectTypes(n, 0, kTakesFloats));
  MYCC_RETURN_IF_ERROR(n.ExpectRank(0, 2, 16));
  std::vector<int64_t> outer = n.Shape(0);
  const int64_t size = outer.back();
  if (outer[outer.size() - 2] != size)
    return n.Refuse(absl::StrCat("the matrices are ", TypeText(n.In(0)), "; expected square ones"));
  if (size < 1 || size > kLargestDeterminant)
    return n.NotSupported(absl::StrCat("the determinant of ", size, " rows"));
  outer.resize(outer.size() - 2);
  const int64_t count = ElementsOf(outer);
  GraphBuilder& g = n.g();
  Buffer rest = g.AddReshape(g.Cast(n.In(0), SumType(n.Type(0))), {count, size, size}), det;
  for (int64_t m = size; m > 0; --m) {
    const Buffer matrices = rest, product = det;
    const Buffer first = g.Reduce(ReduceOp::kArgMax, {count}, {m}, [&](const Axes& a, const Axes& r) {
      return Magnitude(Load(matrices, {a[0], r[0], IntConst(0)}));
    });
    const auto place = [&](const Axes& a) { return MakeCast(DType::kI64, Load(first, {a[0]})); };
    const auto pivot = [&](const Axes& a, const Expr& column) {
      return Load(matrices, {a[0], ClampTo(place(a), IntConst(0), IntConst(m - 1)), column});
    };
    det = g.Map({count}, [&](const Axes& a) {
      const Expr element = pivot(a, IntConst(0));
      const Expr is_first = MakeBinary(Op::kEq, place(a), IntConst(0));
      const Expr factor = MakeSelect(is_first, element, Negative(element));
      return product == nullptr ? factor : factor * Load(product, {a[0]});
    });
    rest = g.Map({count, m - 1, m - 1}, [&](const Axes& a) {
      const auto row = [&](const Expr& column) {
        const Expr is_taken = MakeBinary(Op::kEq, place(a), a[1] + 1);
        return MakeSelect(is_taken, Load(matrices, {a[0], IntConst(0), column}),
                          Load(matrices, {a[0], a[1] + 1, column}));
      };
      const Expr element = pivot(a, IntConst(0)), zero = NumberLike(element, 0);
      const Expr ratio =
          MakeSelect(MakeBinary(Op::kEq, element, zero), zero, Quotient(row(IntConst(0)), element));
      return row(a[2] + 1) - ratio * pivot(a, a[2] + 1);
    });
  }
  n.Set(0, g.Cast(g.AddReshape(det, outer), n.Type(0)));
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
    {"Det", Det, 11},
    {"Gemm", Gemm},
    {"MatMul", MatMul},
};

}  // namespace

std::span<const Operator> MatrixOperators() { return kMatrixTable; }

}  // namespace mycc::onnx
