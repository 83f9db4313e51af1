// What is no contraction: points of the rules' spaces for elementwise stages, transposes and rows, compiled,
// against the reference.
#include <random>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/schedule.h"
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
};

class RowsTest : public testing::TestWithParam<Case> {};

TEST_P(RowsTest, PointsComputeTheReference) {
  const Workload canonical = CanonicalWorkload(GetParam().text);
  std::mt19937 random(1);
  for (const Target& target : RunnableTargets()) {
    for (const Sketch& sketch : GenerateSketches(canonical, target)) {
      EXPECT_NE(sketch.name, "naive");
      for (int n = 0; n < RandomSeeds(12); ++n) {
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

INSTANTIATE_TEST_SUITE_P(All, RowsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mycc
