// Matrix products against loops over their definitions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/onnx/one_operator.h"

namespace mycc::onnx {
namespace {

using ::testing::HasSubstr;
using Index = std::vector<int64_t>;

// The products of stacks of matrices: left and right have the result's rank, extents of 1 repeat.
Numbers StackedProducts(const Numbers& a, const Numbers& b, Index shape) {
  Numbers y{std::move(shape), {}};
  y.values.resize(ElementsOf(y.shape));
  const size_t rank = y.shape.size();
  ForEachIndex(y.shape, [&](const Index& o) {
    for (int64_t k = 0; k < a.shape.back(); ++k) {
      Index left = o, right = o;
      for (size_t i = 0; i + 2 < rank; ++i) {
        left[i] = a.shape[i] == 1 ? 0 : o[i];
        right[i] = b.shape[i] == 1 ? 0 : o[i];
      }
      left[rank - 1] = right[rank - 2] = k;
      y.At(o) += a.At(left) * b.At(right);
    }
  });
  return y;
}

TEST(MatrixOperators, MatMulBroadcastsStacksAndTakesVectors) {
  const struct {
    Index a, b, y, stacked_a, stacked_b, stacked_y;
  } cases[] = {
      {{3, 4}, {4, 2}, {3, 2}, {3, 4}, {4, 2}, {3, 2}},
      {{2, 1, 3, 4}, {5, 4, 2}, {2, 5, 3, 2}, {2, 1, 3, 4}, {1, 5, 4, 2}, {2, 5, 3, 2}},
      {{2, 3, 4}, {4, 5}, {2, 3, 5}, {2, 3, 4}, {1, 4, 5}, {2, 3, 5}},
      {{3, 4}, {2, 4, 5}, {2, 3, 5}, {1, 3, 4}, {2, 4, 5}, {2, 3, 5}},
      {{2, 3, 4}, {1, 1, 4, 5}, {1, 2, 3, 5}, {1, 2, 3, 4}, {1, 1, 4, 5}, {1, 2, 3, 5}},
      {{4}, {4}, {}, {1, 4}, {4, 1}, {1, 1}},
      {{4}, {2, 4, 3}, {2, 3}, {1, 1, 4}, {2, 4, 3}, {2, 1, 3}},
      {{2, 3, 4}, {4}, {2, 3}, {2, 3, 4}, {1, 4, 1}, {2, 3, 1}},
      {{2, 1}, {1, 3}, {2, 3}, {2, 1}, {1, 3}, {2, 3}},
  };
  for (const auto& c : cases) {
    Numbers a = Numbers::Random(c.a, 1), b = Numbers::Random(c.b, 2);
    OneOperator floats("MatMul", 13), narrow("MatMul", 13);
    floats.Input(kFloat, a).Constant(kFloat, b);
    narrow.Input(kBfloat16, a).Input(kBfloat16, b);
    a.shape = c.stacked_a;
    b.shape = c.stacked_b;
    Numbers expected = StackedProducts(a, b, c.stacked_y);
    expected.shape = c.y;
    ExpectNumbers(floats.Run(), 0, expected);
    ExpectNumbers(narrow.Run(1, DType::kBF16), 0, expected, 1e-2);
  }
}

TEST(MatrixOperators, MatMulOfIntegersIsExact) {
  const Numbers a{{1, 2}, {3000000000, 7}}, b{{2, 1}, {3, -5}};
  ExpectNumbers(OneOperator("MatMul", 13).Input(kInt64, a).Input(kInt64, b).Run(1, DType::kI64), 0,
                {{1, 1}, {8999999965}}, 0);
}

TEST(MatrixOperators, GemmScalesTransposesAndBroadcasts) {
  const Index broadcasts[] = {{}, {1}, {5}, {1, 5}, {3, 1}, {3, 5}};
  for (const bool transposes : {false, true}) {
    for (const Index& shape : broadcasts) {
      const Numbers a = Numbers::Random({3, 4}, 1), b = Numbers::Random({4, 5}, 2);
      const Numbers c = Numbers::Random(shape, 3);
      Numbers expected = StackedProducts(a, b, {3, 5});
      ForEachIndex({3, 5}, [&](const Index& o) {
        Index at(o.end() - static_cast<int64_t>(shape.size()), o.end());
        for (size_t i = 0; i < at.size(); ++i) at[i] = shape[i] == 1 ? 0 : at[i];
        expected.At(o) = 0.5 * expected.At(o) + 0.25 * c.At(at);
      });
      const auto given = [&](const Numbers& m) {
        if (!transposes) return m;
        Numbers t{{m.shape[1], m.shape[0]}, std::vector<double>(m.values.size())};
        ForEachIndex(m.shape, [&](const Index& o) { t.At({o[1], o[0]}) = m.At(o); });
        return t;
      };
      OneOperator op("Gemm", 13);
      op.Input(kFloat, given(a)).Input(kFloat, given(b)).Input(kFloat, c);
      op.Float("alpha", 0.5).Float("beta", 0.25).Int("transA", transposes).Int("transB", transposes);
      ExpectNumbers(op.Run(), 0, expected);
    }
  }
}

TEST(MatrixOperators, ShapesThatDoNotFitAreRefused) {
  const auto message = [](const char* op, const Index& a, const Index& b, const Index& c) {
    OneOperator node(op, 13);
    node.Input(kFloat, Numbers::Random(a, 1)).Input(kFloat, Numbers::Random(b, 2));
    if (!c.empty()) node.Input(kFloat, Numbers::Random(c, 3));
    return std::string(node.Run().status().message());
  };
  EXPECT_THAT(message("MatMul", {2, 3}, {4, 2}, {}), HasSubstr("expected as many columns as rows"));
  EXPECT_THAT(message("MatMul", {2, 2, 3}, {3, 3, 2}, {}), HasSubstr("do not fit each other"));
  EXPECT_THAT(message("Gemm", {2, 3}, {4, 2}, {}), HasSubstr("expected as many columns as rows"));
  EXPECT_THAT(message("Gemm", {2, 3}, {3, 2}, {3, 2}), HasSubstr("expected a shape that is broadcast"));
}

}  // namespace
}  // namespace mycc::onnx
