// The winograd primitive: a golden, every size against the interpreter, its error, and its refusals.
#include "codegen/workload/winograd.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "codegen/ir/interpreter.h"
#include "codegen/workload/tolerance.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr double kRoundoff = 0x1p-24;

// Images of rows x columns padded by `pad`; NHWC, or with images and filters in another order.
std::string Conv(int64_t batch, int64_t rows, int64_t columns, int64_t c, int64_t k, int64_t pad,
                 const std::string& type = "f32", bool weights_const = true) {
  const int64_t h = rows + 2 * pad, w = columns + 2 * pad, i = h - 2, j = w - 2;
  return absl::StrCat("workload conv(x: ", type, "[", batch, ",", rows, ",", columns, ",", c,
                      "], w: ", weights_const ? "const " : "", type, "[", k, ",", c, ",3,3], b: ", type, "[",
                      k, "]) -> (y: ", type, "[", batch, ",", i, ",", j, ",", k, "]) {\n  p[n,i,j,c]: ", type,
                      "[", batch, ",", h, ",", w, ",", c, "] = select(", pad, " <= i && i < ", rows + pad,
                      " && ", pad, " <= j && j < ", columns + pad, ", x[n,i-", pad, ",j-", pad,
                      ",c], 0.0)\n  a[n,i,j,k]: ", type, "[", batch, ",", i, ",", j, ",", k,
                      "] = sum[r:3, s:3, c:", c, "](p[n,i+r,j+s,c] * w[k,c,r,s])\n",
                      "  y[n,i,j,k] = max(a[n,i,j,k] + b[k], 0.0)\n}");
}

TEST(WinogradTest, Golden) {
  EXPECT_TRUE(MatchesGolden("schedule/winograd", ScheduledText(Conv(2, 4, 3, 2, 3, 1), "winograd(t4, 2)")));
}

TEST(WinogradTest, EverySize) {
  for (const int m : {2, 4}) {
    const std::string step = absl::StrCat("winograd(t4, ", m, ")");
    for (int64_t rows = 1; rows <= 7; ++rows) {
      for (const int64_t pad : {0, 1, 2}) {
        if (rows + 2 * pad < 3) continue;
        const int64_t columns = 3 + rows * 5 % 7, c = 1 + rows * 11 % 8, k = 1 + rows * 3 % 5;
        const bool weights_const = (rows + pad) % 2 == 0;
        const std::string conv = Conv(1 + rows % 3, rows, columns, c, k, pad, "f32", weights_const);
        const absl::Status status = CheckTrace(conv, step, 3e-5);
        EXPECT_TRUE(status.ok()) << conv << "\n" << status.message();
      }
    }
    for (const int64_t c : {1, 9, 17, 40}) {
      const absl::Status status = CheckTrace(Conv(1, 5, 6, c, 41 - c, 1), step, 3e-5);
      EXPECT_TRUE(status.ok()) << c << " channels: " << status.message();
    }
  }
}

TEST(WinogradTest, OtherLayouts) {
  for (const char* conv :
       {// NCHW, the window's axes before the channels, the filter first in the product, no batch.
        "workload c(x: f32[2,3,7,6], w: const f32[4,3,3,3]) -> (y: f32[2,4,5,4]) {\n"
        "  y[n,k,i,j] = sum[c:3, r:3, s:3](x[n,c,i+r,j+s] * w[k,c,r,s]) }",
        "workload c(x: f32[7,6,3], w: f32[3,3,3,4]) -> (y: f32[5,4,4]) {\n"
        "  y[i,j,k] = sum[c:3, r:3, s:3](w[r,s,c,k] * x[i+r,j+s,c]) }",
        // Channels and filters in blocks, of weights and of activations; blocks of several sizes.
        "workload c(x: f32[1,2,6,7,3], w: f32[4,2,3,3,3,5]) -> (y: f32[1,4,4,5,5]) {\n"
        "  y[n,l,i,j,k] = sum[d:2, r:3, s:3, c:3](x[n,d,i+r,j+s,c] * w[l,d,r,s,c,k]) }",
        "workload c(x: f32[2,6,7,4], w: f32[6,8,3,3]) -> (y: f32[3,4,5,2]) {\n"
        "  y[l,i,j,m] = sum[d:2, r:3, s:3, e:4](x[d,i+r,j+s,e] * w[l*2+m,d*4+e,r,s]) }",
        // Two axes of images; rows and columns exchanged; an offset.
        "workload c(x: f64[2,2,9,8,3], w: f64[4,3,3,3]) -> (y: f64[2,2,5,6,4]) {\n"
        "  y[n,l,j,i,k] = sum[c:3, r:3, s:3](x[n,l,i+r,j+s+1,c] * w[k,c,r,s]) }"}) {
    const std::string block = CanonicalWorkload(conv).stages.back().output->name;
    for (const int m : {2, 4}) {
      const absl::Status status = CheckTrace(conv, absl::StrCat("winograd(", block, ", ", m, ")"), 3e-5);
      EXPECT_TRUE(status.ok()) << conv << "\n" << status.message();
    }
  }
}

// The header's bounds of the errors hold, and the autotuner's tolerance allows them.
TEST(WinogradTest, ErrorsStayWithinTheirBounds) {
  for (const int64_t c : {1, 4, 16, 64, 256}) {
    const Workload canonical = CanonicalWorkload(Conv(1, 12, 12, c, 8, 0));
    const Workload exact = CanonicalWorkload(Conv(1, 12, 12, c, 8, 0, "f64"));
    const std::vector<NDArray> inputs = RandomInputs(canonical, static_cast<uint64_t>(c));
    std::vector<NDArray> wide;
    for (const NDArray& input : inputs) {
      wide.push_back(NDArray::Zeros(DType::kF64, input.shape));
      for (int64_t i = 0; i < input.num_elements(); ++i) wide.back().Set(i, input.Get(i));
    }
    const auto expected = RunReference(exact, wide);
    ASSERT_TRUE(expected.ok()) << expected.status();
    double scale = 0;
    for (int64_t i = 0; i < (*expected)[0].num_elements(); ++i)
      scale = std::max(scale, std::abs((*expected)[0].Get(i).f));
    for (const int m : {2, 4}) {
      Schedule schedule = Schedule::Create(canonical, TestTarget());
      ASSERT_TRUE(schedule.Apply(Step{"winograd", {{std::string("t4")}, {int64_t{m}}}}).ok());
      const auto actual = RunFunction(schedule.function(), inputs, 0);
      ASSERT_TRUE(actual.ok()) << actual.status();
      double error = 0;
      for (int64_t i = 0; i < (*expected)[0].num_elements(); ++i)
        error = std::max(error, std::abs((*actual)[0].Get(i).f - (*expected)[0].Get(i).f));
      RecordProperty(absl::StrCat("F", m, "_c", c), absl::StrCat(error / scale / kRoundoff));
      EXPECT_LT(error, WinogradError(m, c) * kRoundoff * scale) << "F(" << m << "), " << c << " channels";
    }
    EXPECT_LT(WinogradError(4, c) * kRoundoff, ToleranceOf(canonical).of_scale) << c << " channels";
  }
}

struct Refusal {
  const char* workload;
  const char* message;
};

TEST(WinogradTest, Refusals) {
  const Refusal refusals[] = {
      {"(x: f32[1,9,9,4], w: f32[5,4,3,3]) -> (y: f32[1,4,4,5]) {\n"
       "  y[n,i,j,k] = sum[c:4, r:3, s:3](x[n,i*2+r,j*2+s,c] * w[k,c,r,s]) }",
       "axis a1 numbers neither images, filters, nor places of a window that moves by 1"},
      {"(x: f32[1,9,9,4], w: f32[5,4,3,3]) -> (y: f32[1,5,5,5]) {\n"
       "  y[n,i,j,k] = sum[c:4, r:3, s:3](x[n,i+r*2,j+s*2,c] * w[k,c,r,s]) }",
       "axis a1 numbers neither images"},
      {"(x: f32[1,9,9,4], w: f32[5,4,5,5]) -> (y: f32[1,5,5,5]) {\n"
       "  y[n,i,j,k] = sum[c:4, r:5, s:5](x[n,i+r,j+s,c] * w[k,c,r,s]) }",
       "the sum is not over channels and a window of 3 x 3"},
      {"(x: i32[1,9,9,4], w: i32[5,4,3,3]) -> (y: i32[1,7,7,5]) {\n"
       "  y[n,i,j,k] = sum[c:4, r:3, s:3](x[n,i+r,j+s,c] * w[k,c,r,s]) }",
       "its type is not f32 or f64"},
      {"(x: f32[1,9,9,8], w: f32[6,4,3,3]) -> (y: f32[1,7,7,6]) {\n"
       "  y[n,i,j,k] = sum[c:4, r:3, s:3](x[n,i+r,j+s,k//3*4+c] * w[k,c,r,s]) }",
       "is not a convolution for Winograd"},
      {"(x: f32[1,9,9,4], w: f32[4,3,3]) -> (y: f32[1,7,7,4]) {\n"
       "  y[n,i,j,c] = sum[r:3, s:3](x[n,i+r,j+s,c] * w[c,r,s]) }",
       "the sum is not over channels and a window of 3 x 3"},
      {"(x: f32[1,9,9,4], w: f32[5,4,3,3]) -> (y: f32[1,7,7,5]) {\n"
       "  y[n,i,j,k] = max[c:4, r:3, s:3](x[n,i+r,j+s,c] * w[k,c,r,s]) }",
       "it is no sum"},
      {"(x: f32[1,9,9,4], w: f32[5,4,3,3]) -> (y: f32[1,7,7,5]) {\n"
       "  y[n,i,j,k] = sum[c:4, r:3, s:3](tf32(x[n,i+r,j+s,c]) * tf32(w[k,c,r,s])) }",
       "it does not sum products of two tensors' elements"},
      {"(x: f32[1,9,9,4], w: f32[5,4,3,3]) -> (y: f64[1,7,7,5]) {\n"
       "  y[n,i,j,k] = sum[c:4, r:3, s:3](f64(x[n,i+r,j+s,c]) * f64(w[k,c,r,s])) }",
       "as they are or widened from fewer than 32 bits"}};
  for (const Refusal& refusal : refusals) {
    const std::string workload = absl::StrCat("workload c", refusal.workload);
    EXPECT_THAT(ScheduledText(workload, "winograd(t2, 2)"), HasSubstr(refusal.message)) << workload;
  }
  const std::string conv = Conv(1, 5, 5, 3, 4, 1);
  EXPECT_THAT(ScheduledText(conv, "winograd(t4, 3)"), HasSubstr("tiles of 3 x 3; expected 2 or 4"));
  EXPECT_THAT(ScheduledText(conv, "winograd(t4, 2)\nwinograd(t4, 2)"), HasSubstr("it is no sum"));
  EXPECT_THAT(ScheduledText(conv, "split(t4.a1, [2])\nwinograd(t4, 2)"),
              HasSubstr("t4 has been scheduled already"));
  EXPECT_THAT(ScheduledText(conv, "winograd(t9, 2)"), HasSubstr("there is no block t9"));
  EXPECT_THAT(ScheduledText(conv, "winograd(t4, 2)", *ParseTarget("haswell sums=direct")),
              HasSubstr("the target is sums=direct"));
}

}  // namespace
}  // namespace mycc
