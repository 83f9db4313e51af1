// Every primitive's refusals: what it says when it is not legal.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr char kGemm[] =
    R"(workload gemm(a: f32[13,10], b: const f32[10,18], bias: f32[18]) -> (y: f32[13,18]) {
  c[i,j]: f32[13,18] = sum[k:10](a[i,k] * b[k,j])
  y[i,j] = max(c[i,j] + bias[j], 0.0)
})";

struct Refusal {
  const char* steps;
  const char* message;
};

class RefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusalTest, SaysWhy) {
  EXPECT_THAT(ScheduledText(kGemm, GetParam().steps), HasSubstr(GetParam().message));
}

constexpr Refusal kRefusals[] = {
    {"split(t9.a0, [4])",
     "split(t9.a0, [4]): there is no loop t9.a0; the loops are t3.a0, t3.a1, t3.r0, t4.a0, t4.a1"},
    {"split(t3.a0, [0])", "factor 0 is not a positive tile size"},
    {"split(t3.a0, [])", "expected at least one inner factor"},
    {"bind(t3.a0, parallel)\nsplit(t3.a0, [2])", "the loop is parallel; only serial loops are split"},
    {"reorder([t3.a0, t3.a0])", "loop t3.a0 is named twice"},
    {"reorder([t3.a0])", "expected at least two loops"},
    {"reorder([t3.a0, t4.a0])", "not one perfect nest"},
    {"fuse([t3.a0, t3.r0])", "t3.r0 is not the only statement directly inside t3.a0"},
    {"bind(t3.a0, sideways)", "sideways is not a loop kind"},
    {"bind(t3.r0, parallel)", "carries a reduction"},
    {"bind(t3.a0, vector)", "a vector loop must be innermost"},
    {"inline(t3)", "inline(t3): the block is a reduction"},
    {"inline(t4)", "t4 is an output"},
    {"compute_at(t4, t3.a0)", "no block reads t4"},
    {"split(t3.a0, [4])\ncompute_at(t3, t4.a0)", "t3 has been scheduled already"},
    {"reverse_compute_at(t4, t4.a0)", "t4 is already under loop t4.a0"},
    {"reverse_inline(t4)", "t3 is a reduction without an accumulator; cache_write it first"},
    {"cache_write(t3, t4.a0)", "t3 is not under loop t4.a0"},
    {"cache_write(t3, t3.a0)\ncache_write(t3, t3.a1)", "has an accumulator already"},
    {"cache_read(t0, t3, root, packed)", "scope packed is for a const input copied at root; t0 is not const"},
    {"cache_read(t2, t3, root, local)", "t3 does not read t2"},
    {"cache_read(t1, t3, root, packed)\npack(t1.r, [0, 1%8])", "dimension 1 is not covered"},
    {"cache_read(t1, t3, root, packed)\npack(t1.r, [0, 1/8, 1%4])", "not one to one"},
    {"cache_read(t1, t3, root, packed)\npack(t1.r, [0, 5])", "there is no dimension 5"},
    {"cache_read(t1, t3, root, packed)\npack(t1.r, [0, x])", "component x is malformed"},
    {"pack(t1, [0, 1])", "there is no allocated buffer t1"},
    {"rfactor(t3.a0, 4)", "the loop carries no reduction"},
    {"rfactor(t3.r0, 400)", "factor 400 is not between 2 and the extent 10"},
    {"tensorize(t3.r0, fma.f32)", "t3 has no accumulator; cache_write it first"},
    {"tensorize(t3.r0, mma.bf17)", "there is no instruction mma.bf17; there are fma.f32, fma.f64"},
    {"cache_write(t3, t3.a0)\ntensorize(t3.a1, fma.f64)",
     "fma.f64 multiplies f64 into f64; t3 multiplies f32 into f32"},
};
INSTANTIATE_TEST_SUITE_P(All, RefusalTest, ::testing::ValuesIn(kRefusals));

TEST(RefusalTest, ARefusedStepLeavesTheScheduleAsItWas) {
  Schedule schedule = Schedule::Create(CanonicalWorkload(kGemm), TestTarget());
  const std::string before = PrintFunction(schedule.function());
  const Step step{"inline", {{std::string("t3")}}};
  EXPECT_EQ(schedule.Apply(step).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(PrintFunction(schedule.function()), before);
  EXPECT_TRUE(schedule.trace().steps.empty());
}

}  // namespace
}  // namespace mycc
