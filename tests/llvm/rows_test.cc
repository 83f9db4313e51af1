// Stages that are no contractions: points of the rules' spaces for elementwise stages, transposes and rows,
// compiled, against the reference.
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/llvm/compiled.h"
#include "tests/schedule/testing.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

struct Case {
  const char* name;
  const char* text;
};

const Case kCases[] = {
    {"transpose_f32", "workload w(x: f32[37,51]) -> (y: f32[51,37]) { y[i,j] = x[j,i] }"},
    {"transpose_f64", "workload w(x: f64[37,21]) -> (y: f64[21,37]) { y[i,j] = x[j,i] * 2.0 }"},
    {"transpose_i16", "workload w(x: f16[70,51]) -> (y: f16[51,70]) { y[i,j] = x[j,i] }"},
    {"transpose_u8", "workload w(x: u8[130,70]) -> (y: u8[70,130]) { y[i,j] = x[j,i] }"},
    {"transpose_bool", "workload w(x: bool[66,70]) -> (y: bool[70,66]) { y[i,j] = !x[j,i] }"},
    {"transpose_cast", "workload w(x: i8[40,51]) -> (y: f32[51,40]) { y[i,j] = f32(x[j,i]) + 0.5 }"},
    {"permute_021", "workload w(x: f32[3,35,34]) -> (y: f32[3,34,35]) { y[b,i,j] = x[b,j,i] }"},
    {"permute_210", "workload w(x: f32[19,3,34]) -> (y: f32[34,3,19]) { y[i,b,j] = x[j,b,i] }"},
    {"permute_102", "workload w(x: f32[19,3,34]) -> (y: f32[3,19,34]) { y[b,i,j] = x[i,b,j] }"},
    {"two_turned", R"(workload w(x: f32[37,51], v: f32[37,51], u: f32[51,37]) -> (y: f32[51,37]) {
  y[i,j] = x[j,i] * u[i,j] + v[j,i] })"},
    {"turned_select", R"(workload w(x: f32[37,51]) -> (y: f32[60,40]) {
  y[i,j] = select(i < 51 && j < 37, x[clamp(j, 0, 36),clamp(i, 0, 50)], 0.0) })"},
    {"turned_padded", R"(workload w(x: f32[37,51]) -> (y: f32[60,40]) {
  y[i,j] = select(i < 51 && j < 37, x[j,i], 0.0) })"},
    {"softmax", R"(workload w(x: f32[13,327]) -> (y: f32[13,327]) {
  h[i]: f32[13] = max[j:327](x[i,j])
  e[i,j]: f32[13,327] = exp(x[i,j] - h[i])
  s[i]: f32[13] = sum[j:327](e[i,j])
  y[i,j] = e[i,j] / s[i] })"},
    {"softmax_short", R"(workload w(x: f32[9,7]) -> (y: f32[9,7]) {
  h[i]: f32[9] = max[j:7](x[i,j])
  e[i,j]: f32[9,7] = exp(x[i,j] - h[i])
  s[i]: f32[9] = sum[j:7](e[i,j])
  y[i,j] = e[i,j] / s[i] })"},
    {"softmax_two_axes", R"(workload w(x: f32[3,5,130]) -> (y: f32[3,5,130]) {
  h[b,i]: f32[3,5] = max[j:130](x[b,i,j])
  e[b,i,j]: f32[3,5,130] = exp(x[b,i,j] - h[b,i])
  s[b,i]: f32[3,5] = sum[j:130](e[b,i,j])
  y[b,i,j] = e[b,i,j] / s[b,i] })"},
    {"softmax_of_one_row", R"(workload w(x: f32[1030]) -> (y: f32[1030]) {
  h[]: f32[] = max[j:1030](x[j])
  e[j]: f32[1030] = exp(x[j] - h[])
  s[]: f32[] = sum[j:1030](e[j])
  y[j] = e[j] / s[] })"},
    {"softmax_f64", R"(workload w(x: f64[6,50]) -> (y: f64[6,50]) {
  h[i]: f64[6] = max[j:50](x[i,j])
  e[i,j]: f64[6,50] = exp(x[i,j] - h[i])
  s[i]: f64[6] = sum[j:50](e[i,j])
  y[i,j] = e[i,j] / s[i] })"},
    {"softmax_past_caches", R"(workload w(x: f32[29,64]) -> (y: f32[29,64]) {
  h[i]: f32[29] = max[j:64](x[i,j])
  e[i,j]: f32[29,64] = exp(x[i,j] - h[i])
  s[i]: f32[29] = sum[j:64](e[i,j])
  y[i,j] = e[i,j] / s[i] })"},
    {"transpose_past_caches", "workload w(x: f32[48,37]) -> (y: f32[37,48]) { y[i,j] = x[j,i] }"},
    {"gelu_past_caches", R"(workload w(x: f32[37,48]) -> (y: f32[37,48]) {
  y[i,j] = 0.5 * x[i,j] * (1.0 + erf(x[i,j] * 0.70710678)) })"},
    {"log_sum_exp", R"(workload w(x: f32[13,327]) -> (y: f32[13]) {
  h[i]: f32[13] = max[j:327](x[i,j])
  s[i]: f32[13] = sum[j:327](exp(x[i,j] - h[i]))
  y[i] = h[i] + log(s[i]) })"},
    {"layer_norm", R"(workload w(x: f32[19,101], g: const f32[101], b: const f32[101]) -> (y: f32[19,101]) {
  s[i]: f32[19] = sum[j:101](x[i,j])
  d[i,j]: f32[19,101] = x[i,j] - s[i] / 101.0
  v[i]: f32[19] = sum[j:101](d[i,j] * d[i,j])
  y[i,j] = d[i,j] * rsqrt(v[i] / 101.0 + 0.00001) * g[j] + b[j] })"},
    {"long_layer_norm", R"(workload w(x: f32[9,301], g: const f32[301]) -> (y: f32[9,301]) {
  s[i]: f32[9] = sum[j:301](x[i,j])
  d[i,j]: f32[9,301] = x[i,j] - s[i] / 301.0
  v[i]: f32[9] = sum[j:301](d[i,j] * d[i,j])
  y[i,j] = d[i,j] * rsqrt(v[i] / 301.0 + 0.00001) * g[j] })"},
    {"softmax_of_long_rows", R"(workload w(x: f32[9,301]) -> (y: f32[9,301]) {
  h[i]: f32[9] = max[j:301](x[i,j])
  e[i,j]: f32[9,301] = exp(x[i,j] - h[i])
  s[i]: f32[9] = sum[j:301](e[i,j])
  y[i,j] = e[i,j] / s[i] })"},
    {"variances", R"(workload w(x: f64[9,40,8]) -> (v: f64[9]) {
  s[i]: f64[9] = sum[j:40, k:8](x[i,j,k])
  v[i] = sum[j:40, k:8]((x[i,j,k] - s[i] / 320.0) * (x[i,j,k] - s[i] / 320.0)) })"},
    {"rms_norm_of_gelu", R"(workload w(x: f32[7,200]) -> (y: f32[7,200]) {
  t[i,j]: f32[7,200] = tanh(x[i,j]) * x[i,j]
  v[i]: f32[7] = sum[j:200](t[i,j] * t[i,j])
  y[i,j] = t[i,j] * rsqrt(v[i] / 200.0 + 0.00001) })"},
    {"argmax", "workload w(x: f32[13,150]) -> (y: i32[13]) { y[i] = argmax[j:150](floor(x[i,j] * 3.0)) }"},
    {"argmin_i8", "workload w(x: i8[13,150]) -> (y: i32[13]) { y[i] = argmin[j:150](x[i,j]) }"},
    {"argmax_columns", "workload w(x: f32[50,37]) -> (y: i32[37]) { y[j] = argmax[i:50](x[i,j]) }"},
    {"sums", R"(workload w(x: f32[300,37]) -> (r: f32[300], c: f32[37], m: f32[37], a: f32[]) {
  r[i] = sum[j:37](x[i,j])
  c[j] = sum[i:300](x[i,j])
  m[j] = max[i:300](x[i,j])
  a[] = sum[i:300, j:37](x[i,j]) })"},
    {"sum_of_all", "workload w(x: f32[130,150]) -> (y: f32[]) { y[] = sum[i:130, j:150](x[i,j]) }"},
    {"reversed", R"(workload w(x: f32[5,77], z: u8[5,77]) -> (y: f32[5,77], u: u8[5,77]) {
  y[i,j] = x[i,76-j]
  u[i,j] = z[i,76-j] })"},
    {"narrow_columns_4", "workload w(x: f32[3001,4]) -> (y: f32[4]) { y[j] = sum[i:3001](x[i,j]) }"},
    {"narrow_columns_3", "workload w(x: f32[3001,3]) -> (y: f32[3]) { y[j] = max[i:3001](x[i,j]) }"},
    {"narrow_columns_32", "workload w(x: i32[2000,32]) -> (y: i32[32]) { y[j] = sum[i:2000](x[i,j] * 7) }"},
    {"narrow_columns_24", "workload w(x: f64[2000,24]) -> (y: f64[24]) { y[j] = sum[i:2000](abs(x[i,j])) }"},
    {"narrow_columns_bf16", R"(workload w(x: bf16[2001,12], z: f32[2001,12]) -> (y: f32[12]) {
  y[j] = sum[i:2001](f32(x[i,j]) * z[i,j]) })"},
    {"argmin_of_products", R"(workload w(x: i32[5,37,4]) -> (y: i32[5,4]) {
  y[i,k] = argmin[j:37](x[i,j,k] % 7) })"},
    {"long_sum", "workload w(x: f32[8200,2]) -> (y: f32[]) { y[] = sum[j:8200, k:2](x[j,k]) }"},
    {"long_sums", "workload w(x: f32[3,9001]) -> (y: f32[3]) { y[i] = sum[j:9001](x[i,j]) }"},
    {"long_argmax",
     "workload w(x: f32[1,9001]) -> (y: i32[1]) { y[i] = argmax[j:9001](floor(x[i,j] * 9.0)) }"},
    {"long_softmax", R"(workload w(x: f32[1,8192]) -> (y: f32[1,8192]) {
  h[i]: f32[1] = max[j:8192](x[i,j])
  e[i,j]: f32[1,8192] = exp(x[i,j] - h[i])
  s[i]: f32[1] = sum[j:8192](e[i,j])
  y[i,j] = e[i,j] / s[i] })"},
    {"long_bf16", R"(workload w(x: bf16[2,8300]) -> (y: f32[2]) { y[i] = max[j:8300](f32(x[i,j])) })"},
    {"gather", R"(workload w(t: f32[50,37], i: i32[11]) -> (y: f32[11,37]) {
  y[a,b] = t[clamp(i[a], 0, 49), b] })"},
};

class RowsTest : public testing::TestWithParam<Case> {};

TEST_P(RowsTest, PointsComputeTheReference) {
  const Workload canonical = CanonicalWorkload(GetParam().text);
  std::mt19937 random(1);
  for (Target target : RunnableTargets()) {
    target.l2_bytes = 2048;  // less than many outputs have
    for (const Sketch& sketch : GenerateSketches(canonical, target)) {
      EXPECT_NE(sketch.name, "naive");
      for (int n = 0; n < RandomSeeds(4); ++n) {
        Choice choice = sketch.default_choice;
        for (size_t d = 0; n > 0 && d < choice.size(); ++d)
          choice[d] = static_cast<int>(random() % sketch.space.decisions[d].choices.size());
        if (!sketch.space.Legal(choice)) continue;
        const absl::StatusOr<Trace> trace = sketch.instantiate(choice);
        ASSERT_TRUE(trace.ok()) << trace.status();
        const absl::StatusOr<Schedule> schedule = Replay(canonical, target, *trace);
        ASSERT_TRUE(schedule.ok()) << schedule.status() << "\n" << PrintTrace(*trace);
        const absl::Status status =
            CheckCompiledFunction(canonical, schedule->function(), target, 1e-4, n < 2);
        EXPECT_TRUE(status.ok()) << PrintTrace(*trace) << status.message();
      }
    }
  }
}

// How many choices a decision of the first sketch has.
size_t Choices(const char* text, const std::string& decision) {
  Target target = Avx512Target();
  target.l2_bytes = 2048;
  const std::vector<Sketch> sketches = GenerateSketches(CanonicalWorkload(text), target);
  for (const Decision& d : sketches.at(0).space.decisions) {
    if (d.name == decision) return d.choices.size();
  }
  return 0;
}

// The rules of a workload's sketches, of rows longer than half of l2.
std::vector<std::string> SketchNames(const char* text) {
  Target target = Avx512Target();
  target.l2_bytes = 2048;
  std::vector<std::string> names;
  for (const Sketch& sketch : GenerateSketches(CanonicalWorkload(text), target)) names.push_back(sketch.name);
  return names;
}

TEST(JointRowsTest, AreOfferedForLongRowsOfKnownPairs) {
  using ::testing::ElementsAre;
  EXPECT_THAT(SketchNames(R"(workload w(x: f32[13,327]) -> (y: f32[13]) {
  h[i]: f32[13] = max[j:327](x[i,j])
  s[i]: f32[13] = sum[j:327](exp(x[i,j] - h[i]))
  y[i] = h[i] + log(s[i]) })"),
              ElementsAre("row", "row_joint"));
  EXPECT_THAT(SketchNames(R"(workload w(x: f32[13,200]) -> (y: f32[13]) {
  h[i]: f32[13] = max[j:200](x[i,j])
  s[i]: f32[13] = sum[j:200](exp(x[i,j] - h[i]))
  y[i] = h[i] + log(s[i]) })"),
              ElementsAre("row"));
  EXPECT_THAT(SketchNames(R"(workload w(x: f32[13,327]) -> (y: f32[13]) {
  h[i]: f32[13] = max[j:327](x[i,j])
  s[i]: f32[13] = sum[j:327](tanh(x[i,j] - h[i]))
  y[i] = h[i] + s[i] })"),
              ElementsAre("row"));
}

TEST(MemoryDecisionsTest, AreOfferedWhereTheyMeanSomething) {
  EXPECT_EQ(Choices("workload w(x: f32[37,48]) -> (y: f32[37,48]) { y[i,j] = exp(x[i,j]) }", "t1.bypass"), 2);
  EXPECT_EQ(Choices("workload w(x: f32[37,51]) -> (y: f32[37,51]) { y[i,j] = exp(x[i,j]) }", "t1.bypass"), 1);
  EXPECT_EQ(Choices("workload w(x: f32[4,48]) -> (y: f32[4,48]) { y[i,j] = exp(x[i,j]) }", "t1.bypass"), 1);
  EXPECT_EQ(Choices(R"(workload w(x: f32[19,96]) -> (y: f32[19,96]) {
  s[i]: f32[19] = sum[j:96](x[i,j])
  v[i]: f32[19] = sum[j:96]((x[i,j] - s[i]) * (x[i,j] - s[i]))
  y[i,j] = (x[i,j] - s[i]) * rsqrt(v[i]) })",
                    "t3.ahead"),
            4);
  EXPECT_EQ(Choices("workload w(x: f32[19,96]) -> (y: f32[19]) { y[i] = sum[j:96](x[i,j]) }", "t1.ahead"), 1);
}

INSTANTIATE_TEST_SUITE_P(All, RowsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mycc
