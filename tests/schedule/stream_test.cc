// stream_reduction: goldens of chains in one pass, the interpreter's word on them, and refusals in words.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr char kAttention[] =
    R"(workload attention(q: f32[2,13,8], k: f32[2,22,8], v: f32[2,22,6]) -> (o: f32[2,13,6]) {
  s[h,i,j]: f32[2,13,22] = sum[d:8](q[h,i,d] * k[h,j,d])
  c[h,i,j]: f32[2,13,22] = select(j <= i + 9, s[h,i,j] * 0.35, -inf)
  m[h,i]: f32[2,13] = max[j:22](c[h,i,j])
  e[h,i,j]: f32[2,13,22] = exp(c[h,i,j] - m[h,i])
  l[h,i]: f32[2,13] = sum[j:22](e[h,i,j])
  p[h,i,j]: f32[2,13,22] = e[h,i,j] / l[h,i]
  o[h,i,d] = sum[j:22](p[h,i,j] * v[h,j,d])
})";

// t3 = s, t4 = c, t5 = m, t6 = e, t7 = l, t8 = p, t9 = o.
constexpr char kOnePass[] = R"(inline(t4)
split(t9.a1, [4])
split(t9.r0, [8])
reorder([t9.a0, t9.a1.0, t9.r0.0, t9.a1.1, t9.a2, t9.r0.1])
cache_write(t9, t9.a1.0)
compute_at(t8, t9.r0.0)
stream_reduction(t7, t9.r0.0)
compute_at(t6, t9.r0.0)
stream_reduction(t5, t9.r0.0)
compute_at(t3, t9.r0.0)
)";

void Check(const std::string& name, const std::string& workload, const std::string& steps) {
  const absl::Status status = CheckTrace(workload, steps);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(MatchesGolden("schedule/" + name, ScheduledText(workload, steps)));
}

TEST(StreamTest, Attention) { Check("stream_attention", kAttention, kOnePass); }

// A reduction t2, values t3 that depend on it, and their sum t4.
constexpr char kThreeStages[] = R"(split(t4.r0, [8])
reorder([t4.a0, t4.r0.0, t4.a1, t4.r0.1])
cache_write(t4, t4.a0)
compute_at(t3, t4.r0.0)
stream_reduction(t2, t4.r0.0)
)";

// m is no exponent's maximum and no factor.
TEST(StreamTest, RefusesAValueWithoutACorrection) {
  const std::string text = R"(workload w(x: f32[4,24], v: f32[24,6]) -> (o: f32[4,6]) {
  m[i]: f32[4] = max[j:24](x[i,j])
  e[i,j]: f32[4,24] = tanh(x[i,j] - m[i])
  o[i,d] = sum[j:24](e[i,j] * v[j,d])
})";
  EXPECT_THAT(ScheduledText(text, kThreeStages),
              HasSubstr("t0[a0,a1] - t2[a0] depends on t2, and its parts depend on it differently"));
}

// exp(m - x) would grow with the maximum.
TEST(StreamTest, RefusesACorrectionThatOverflows) {
  const std::string text = R"(workload w(x: f32[4,24], v: f32[24,6]) -> (o: f32[4,6]) {
  m[i]: f32[4] = max[j:24](x[i,j])
  e[i,j]: f32[4,24] = exp(m[i] - x[i,j])
  o[i,d] = sum[j:24](e[i,j] * v[j,d])
})";
  EXPECT_THAT(ScheduledText(text, kThreeStages), HasSubstr("could overflow"));
}

// Without its factor 1 / l the sum of large numbers would not fit f16.
TEST(StreamTest, RefusesToTakeAFactorOutOfARoundingThatLosesRange) {
  const std::string text = R"(workload w(x: f32[4,24], v: f16[24,6]) -> (o: f32[4,6]) {
  l[i]: f32[4] = sum[j:24](x[i,j])
  p[i,j]: f16[4,24] = f16(x[i,j] / l[i])
  o[i,d] = sum[j:24](f32(p[i,j]) * f32(v[j,d]))
})";
  EXPECT_THAT(ScheduledText(text, kThreeStages), HasSubstr("may not fit f16"));
}

TEST(StreamTest, RefusesASumWithoutAnAccumulator) {
  EXPECT_THAT(ScheduledText(kAttention,
                            "split(t9.r0, [8])\nreorder([t9.a0, t9.r0.0, t9.a1, t9.a2, t9.r0.1])\n"
                            "compute_at(t8, t9.r0.0)\nstream_reduction(t7, t9.r0.0)\n"),
              HasSubstr("t9 has no accumulator of its own around the loop; cache_write it first"));
}

// Weights that are rounded inside the product get a tensor of the narrow type.
TEST(OperandStageTest, RoundedFactor) {
  Check("operand_stage", R"(workload w(p: f32[6,9], v: bf16[9,5]) -> (o: f32[6,5]) {
  o[i,d] = sum[j:9](f32(bf16(exp(p[i,j]))) * f32(v[j,d]))
})",
        "operand_stage(t2, 0)\nsplit(t2.a0, [4])\ncompute_at(t2.a, t2.a0.0)\n");
}

TEST(OperandStageTest, RefusesALoad) {
  EXPECT_THAT(ScheduledText(R"(workload w(p: f32[6,9], v: f32[9,5]) -> (o: f32[6,5]) {
  o[i,d] = sum[j:9](p[i,j] * v[j,d])
})",
                            "operand_stage(t2, 1)\n"),
              HasSubstr("t2 is no sum of products whose right factor is computed"));
}

// Keys beyond the diagonal come in the last blocks.
TEST(SkipMaskedTest, Causal) {
  Check("skip_masked_causal", kAttention, absl::StrCat(kOnePass, "skip_masked(t9.r0.0)\n"));
}

// Rows with the most keys come first.
TEST(ReverseTest, Causal) {
  Check("reverse_causal", kAttention, absl::StrCat(kOnePass, "skip_masked(t9.r0.0)\nreverse(t9.a1.0)\n"));
}

TEST(ReverseTest, RefusesAReduction) {
  EXPECT_THAT(ScheduledText(kAttention, "reverse(t9.r0)\n"),
              HasSubstr("loop t9.r0 carries a reduction, whose first iteration initializes it"));
}

constexpr char kWindow[] =
    R"(workload window(q: f32[40,8], k: f32[40,8], v: f32[40,6]) -> (o: f32[40,6]) {
  s[i,j]: f32[40,40] = sum[d:8](q[i,d] * k[j,d])
  c[i,j]: f32[40,40] = select(j <= i && i < j + 9, s[i,j], -inf)
  m[i]: f32[40] = max[j:40](c[i,j])
  e[i,j]: f32[40,40] = exp(c[i,j] - m[i])
  l[i]: f32[40] = sum[j:40](e[i,j])
  p[i,j]: f32[40,40] = e[i,j] / l[i]
  o[i,d] = sum[j:40](p[i,j] * v[j,d])
})";

// A window of keys: the first blocks and the last ones are hidden.
TEST(SkipMaskedTest, Window) {
  Check("skip_masked_window", kWindow, R"(inline(t4)
split(t9.a0, [4])
split(t9.r0, [4])
reorder([t9.a0.0, t9.r0.0, t9.a0.1, t9.a1, t9.r0.1])
cache_write(t9, t9.a0.0)
compute_at(t8, t9.r0.0)
stream_reduction(t7, t9.r0.0)
compute_at(t6, t9.r0.0)
stream_reduction(t5, t9.r0.0)
compute_at(t3, t9.r0.0)
skip_masked(t9.r0.0)
)");
}

}  // namespace
}  // namespace mycc
