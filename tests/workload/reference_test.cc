// The reference semantics of workloads, and random inputs.
#include "codegen/workload/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "codegen/workload/parse.h"

namespace mycc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Workload Parse(const std::string& text) {
  auto workload = ParseWorkload(text, "test");
  EXPECT_TRUE(workload.ok()) << workload.status() << "\n" << text;
  return workload.ok() ? *std::move(workload) : Workload();
}

NDArray Array(DType dtype, std::vector<int64_t> shape, const std::vector<double>& values) {
  NDArray array = NDArray::Zeros(dtype, std::move(shape));
  EXPECT_EQ(array.num_elements(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i)
    array.Set(static_cast<int64_t>(i),
              IsFloat(dtype) ? Scalar{values[i], 0} : Scalar{0, static_cast<int64_t>(values[i])});
  return array;
}

std::vector<double> Values(const NDArray& array) {
  std::vector<double> values;
  for (int64_t i = 0; i < array.num_elements(); ++i) {
    values.push_back(IsFloat(array.dtype) ? array.Get(i).f : static_cast<double>(array.Get(i).i));
  }
  return values;
}

std::vector<double> Compute(const std::string& text, const std::vector<NDArray>& inputs) {
  const auto outputs = RunReference(Parse(text), inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? Values((*outputs)[0]) : std::vector<double>();
}

TEST(Reference, ConvolutionAgreesWithLoops) {
  const Workload workload =
      Parse(R"(workload conv(x: f32[1,3,5,6], w: const f32[4,3,3,3], b: const f32[4]) -> (y: f32[1,4,5,6]) {
    p[n,c,i,j]: f32[1,3,7,8] = select(1 <= i && i < 6 && 1 <= j && j < 7, x[n,c,i-1,j-1], 0.0)
    a[n,k,i,j]: f32[1,4,5,6] = sum[c:3, r:3, s:3](p[n,c,i+r,j+s] * w[k,c,r,s])
    y[n,k,i,j] = max(a[n,k,i,j] + b[k], 0.0)
  })");
  const std::vector<NDArray> inputs = RandomInputs(workload, 7);
  const auto outputs = RunReference(workload, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < 5; ++i) {
      for (int j = 0; j < 6; ++j) {
        float sum = 0;
        for (int c = 0; c < 3; ++c) {
          for (int r = 0; r < 3; ++r) {
            for (int s = 0; s < 3; ++s) {
              const int row = i + r - 1, column = j + s - 1;
              if (row < 0 || row >= 5 || column < 0 || column >= 6) continue;
              const float x = static_cast<float>(inputs[0].Get((c * 5 + row) * 6 + column).f);
              const float w = static_cast<float>(inputs[1].Get(((k * 3 + c) * 3 + r) * 3 + s).f);
              sum += x * w;
            }
          }
        }
        sum += static_cast<float>(inputs[2].Get(k).f);
        EXPECT_EQ((*outputs)[0].Get((k * 5 + i) * 6 + j).f, std::max(sum, 0.0f)) << k << " " << i << " " << j;
      }
    }
  }
}

TEST(Reference, AccumulatesInTheOperandsType) {
  const NDArray ones = Array(DType::kF16, {3000}, std::vector<double>(3000, 1.0));
  EXPECT_THAT(Compute("workload f(x: f16[3000]) -> (y: f16[]) { y[] = sum[k:3000](x[k]) }", {ones}),
              ElementsAre(2048));
  EXPECT_THAT(Compute("workload f(x: f16[3000]) -> (y: f32[]) { y[] = sum[k:3000](f32(x[k])) }", {ones}),
              ElementsAre(3000));
  const NDArray bytes = Array(DType::kI8, {3}, {100, 100, 100});
  EXPECT_THAT(Compute("workload f(x: i8[3]) -> (y: i8[]) { y[] = sum[k:3](x[k]) }", {bytes}),
              ElementsAre(44));
}

TEST(Reference, ReductionsOverNothing) {
  const double inf = std::numeric_limits<double>::infinity();
  const NDArray none = Array(DType::kF32, {0}, {});
  EXPECT_THAT(Compute("workload f(x: f32[0]) -> (y: f32[2]) { y[i] = sum[k:0](x[k]) }", {none}),
              ElementsAre(0, 0));
  EXPECT_THAT(Compute("workload f(x: f32[0]) -> (y: f32[]) { y[] = prod[k:0](x[k]) }", {none}),
              ElementsAre(1));
  EXPECT_THAT(Compute("workload f(x: f32[0]) -> (y: f32[]) { y[] = max[k:0](x[k]) }", {none}),
              ElementsAre(-inf));
  EXPECT_THAT(Compute("workload f() -> (y: i8[]) { y[] = min[k:0](i8(3)) }", {}), ElementsAre(127));
  EXPECT_THAT(Compute("workload f(x: f32[4]) -> (y: f32[0]) { y[i] = x[0] }",
                      {Array(DType::kF32, {4}, {1, 2, 3, 4})}),
              ElementsAre());
}

TEST(Reference, ArgmaxTakesTheLowestOfTheBest) {
  const double nan = std::nan("");
  const std::string text = "workload f(x: f32[5]) -> (y: i32[]) { y[] = argmax[k:5](x[k]) }";
  EXPECT_THAT(Compute(text, {Array(DType::kF32, {5}, {1, 3, 2, 3, 0})}), ElementsAre(1));
  EXPECT_THAT(Compute(text, {Array(DType::kF32, {5}, {1, 3, nan, 9, nan})}), ElementsAre(2));
  EXPECT_THAT(
      Compute(text, {Array(DType::kF32, {5}, {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY})}),
      ElementsAre(0));
  EXPECT_THAT(Compute("workload f(x: u8[4]) -> (y: i32[]) { y[] = argmin[k:4](x[k]) }",
                      {Array(DType::kU8, {4}, {7, 2, 2, 9})}),
              ElementsAre(1));
  // Many elements: every one counts from its own beginning.
  EXPECT_THAT(Compute("workload f(x: i32[3,2]) -> (y: i32[3]) { y[i] = argmax[k:2](x[i,k]) }",
                      {Array(DType::kI32, {3, 2}, {1, 2, 2, 1, 5, 5})}),
              ElementsAre(1, 0, 0));
}

TEST(Reference, NaNWinsMaxAndMin) {
  const NDArray x = Array(DType::kF32, {3}, {1, std::nan(""), 2});
  EXPECT_TRUE(std::isnan(Compute("workload f(x: f32[3]) -> (y: f32[]) { y[] = max[k:3](x[k]) }", {x})[0]));
  EXPECT_TRUE(std::isnan(Compute("workload f(x: f32[3]) -> (y: f32[]) { y[] = min[k:3](x[k]) }", {x})[0]));
}

TEST(Reference, GathersAndClamps) {
  const NDArray table = Array(DType::kF32, {3, 2}, {0, 1, 10, 11, 20, 21}),
                rows = Array(DType::kI32, {4}, {2, -5, 99, 1});
  EXPECT_THAT(
      Compute("workload f(i: i32[4], t: f32[3,2]) -> (y: f32[4,2]) { y[r,c] = t[clamp(i[r], 0, 2), c] }",
              {rows, table}),
      ElementsAre(20, 21, 0, 1, 20, 21, 10, 11));
}

TEST(Reference, AxesAreI64ValuesAndIntegersWrap) {
  EXPECT_THAT(Compute("workload f() -> (y: i8[4]) { y[i] = i8(i * 100) }", {}), ElementsAre(0, 100, -56, 44));
  EXPECT_THAT(Compute("workload f() -> (y: bool[3,3]) { y[i,j] = j <= i }", {}),
              ElementsAre(1, 0, 0, 1, 1, 0, 1, 1, 1));
  EXPECT_THAT(Compute("workload f() -> (y: f32[2]) { y[i] = f32(i * 4611686018427387904 * 4) }", {}),
              ElementsAre(0, 0));
}

TEST(Reference, StagesLongerThanABlock) {
  const auto sums = Compute("workload f() -> (y: f64[3]) { y[i] = sum[k:1000](f64(i * 1000 + k)) }", {});
  EXPECT_THAT(sums, ElementsAre(499500, 1499500, 2499500));
  const auto line = Compute("workload f() -> (y: i64[7,101]) { y[i,j] = i * 101 + j }", {});
  for (size_t k = 0; k < line.size(); ++k) EXPECT_EQ(line[k], static_cast<double>(k));
}

TEST(Reference, OutputsStandInDeclaredOrder) {
  const auto outputs = RunReference(
      Parse("workload f(x: f32[2]) -> (z: f32[2], y: f32[2]) { y[i] = x[i] + 1.0 z[i] = y[i] * 2.0 }"),
      {Array(DType::kF32, {2}, {1, 2})});
  ASSERT_TRUE(outputs.ok());
  EXPECT_THAT(Values((*outputs)[0]), ElementsAre(4, 6));
  EXPECT_THAT(Values((*outputs)[1]), ElementsAre(2, 3));
}

TEST(Reference, InputsAreChecked) {
  const Workload workload = Parse("workload f(x: f32[2]) -> (y: f32[2]) { y[i] = x[i] }");
  const auto message = [&](const std::vector<NDArray>& inputs) {
    return std::string(RunReference(workload, inputs).status().message());
  };
  EXPECT_EQ(message({}), "f got 0 inputs; expected 1");
  EXPECT_EQ(message({Array(DType::kF32, {3}, {1, 2, 3})}), "input `x` of f is f32[3]; expected f32[2]");
  EXPECT_EQ(message({Array(DType::kF64, {2}, {1, 2})}), "input `x` of f is f64[2]; expected f32[2]");
  const Workload large = Parse("workload g() -> (y: f32[1000000,1000000]) { y[i,j] = 0.0 }");
  EXPECT_THAT(std::string(RunReference(large, {}).status().message()),
              HasSubstr("expected at most 536870912"));
}

TEST(SampledReference, ComputesOnlyWhatAnElementNeeds) {
  // Far too large to compute whole.
  const Workload workload = Parse(
      "workload f(x: f32[4]) -> (y: f32[1000000,1000000]) { a[i,j]: f32[1000000,1000000] = "
      "x[i%4] + f32(j) y[i,j] = sum[k:3](a[i,(j+k)%1000000]) }");
  const std::vector<NDArray> inputs = {Array(DType::kF32, {4}, {0, 100, 200, 300})};
  SampledReference sampled(workload, StoredElements(inputs));
  EXPECT_EQ(sampled.Output(0, 0).f, 0 + 1 + 2);
  EXPECT_EQ(sampled.Output(0, 1000001).f, 300 + 1 + 2 + 3);
  EXPECT_EQ(sampled.Output(0, 1000001).f, 300 + 1 + 2 + 3);
}

TEST(RandomInputs, AreInTheirRangesAndRepeatable) {
  const Workload workload = Parse(
      "workload f(x: f32[500], h: bf16[500], m: i32[500], p: bool[500], i: i32[500], u: u8[500], t: "
      "f32[7,300]) "
      "-> (y: f32[500]) { y[k] = t[clamp(i[k], 0, 6), u[k]] }");
  const std::vector<NDArray> inputs = RandomInputs(workload, 3), again = RandomInputs(workload, 3),
                             other = RandomInputs(workload, 4);
  for (size_t k = 0; k < inputs.size(); ++k) EXPECT_EQ(inputs[k].bytes, again[k].bytes);
  EXPECT_NE(inputs[0].bytes, other[0].bytes);
  const auto range = [&](int k) {
    const std::vector<double> values = Values(inputs[k]);
    return std::make_pair(*std::ranges::min_element(values), *std::ranges::max_element(values));
  };
  EXPECT_GE(range(0).first, -1);
  EXPECT_LT(range(0).first, -0.9);
  EXPECT_LE(range(0).second, 1);
  EXPECT_GT(range(0).second, 0.9);
  EXPECT_EQ(range(2), std::make_pair(-8.0, 7.0));
  EXPECT_EQ(range(3), std::make_pair(0.0, 1.0));
  EXPECT_EQ(range(4), std::make_pair(0.0, 6.0));  // indexes 7 rows
  EXPECT_EQ(range(5).first, 0);                   // indexes 300 columns, and has 256 values
  EXPECT_GT(range(5).second, 200);
}

// Lengths that masks compare with axes hide none of them, all, or some.
TEST(RandomInputs, LengthsReachFromNoKeysToAll) {
  const Workload workload = Parse(
      "workload f(x: f32[40], n: i32[900], a: i64[900], u: u8[900], b: i32[900]) -> (y: f32[900]) { "
      "y[k] = sum[j:300](select(j < i64(n[k]) && a[k] <= j && j + 20 < i64(u[k]) && b[k] < b[0], x[0], 0.0)) "
      "}");
  const std::vector<NDArray> inputs = RandomInputs(workload, 3);
  const auto range = [&](int k) {
    const std::vector<double> values = Values(inputs[k]);
    return std::make_pair(*std::ranges::min_element(values), *std::ranges::max_element(values));
  };
  EXPECT_EQ(DrawsOf(workload)[1].low, 0);
  EXPECT_EQ(DrawsOf(workload)[1].high, 300);
  EXPECT_LT(range(1).first, 10);
  EXPECT_GT(range(1).second, 290);
  EXPECT_EQ(DrawsOf(workload)[2].high, 300);
  EXPECT_EQ(DrawsOf(workload)[3].low, 20);
  EXPECT_EQ(DrawsOf(workload)[3].high, 255);
  EXPECT_EQ(DrawsOf(workload)[4].high, 7);  // two numbers of the data
}

}  // namespace
}  // namespace mycc
