// stream_reduction: goldens of chains in one pass, the interpreter's word on them, and refusals in words.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/substitute.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

// The weights are read across: their stage has the order of what they are computed from.
TEST(OperandStageTest, HasTheOrderOfItsLoad) {
  Check("operand_stage_across", R"(workload w(p: f32[6,9], v: bf16[9,5]) -> (o: f32[5,6]) {
  o[d,i] = sum[j:9](f32(bf16(exp(p[i,j]))) * f32(v[j,d]))
})",
        "operand_stage(t2, 0)\nsplit(t2.r0, [4])\n");
}

constexpr char kReadAcross[] = R"(workload w(p: f32[2,6,9], v: f32[9,5]) -> (o: f32[6,2,5]) {
  t[h,i,d]: f32[2,6,5] = sum[j:9](p[h,i,j] * v[j,d])
  o[i,h,d] = t[h,i,d] * 0.5
})";

// The sum is computed where it is read.
// The maximum is that of masked scores without their factor, which exponents have in a constant.
TEST(FactorStageTest, MaskedScores) {
  const std::string rest = absl::StrReplaceAll(
      kOnePass, {{"inline(t4)\n", ""}, {"compute_at(t3", "compute_at(t4.x, t9.r0.0)\ncompute_at(t3"}});
  Check("factor_stage", kAttention, absl::StrCat("factor_stage(t4)\ninline(t4)\n", rest));
}

TEST(FactorStageTest, RefusesWhatHasNone) {
  for (const char* stage : {"t3", "t6"}) {
    EXPECT_THAT(ScheduledText(kAttention, absl::StrCat("factor_stage(", stage, ")\n")),
                HasSubstr(absl::StrCat(
                    stage, " has no positive factor; expected c * x, or select(.., c * x, -inf)")));
  }
}

TEST(PermuteAxesTest, OrderOfTheReader) {
  Check("permute_axes", kReadAcross,
        "permute_axes(t2, [1, 0, 2])\ninline(t2)\nsplit(t3.a0, [2])\ncompute_at(t2.p, t3.a0.0)\n");
}

TEST(PermuteAxesTest, RefusesWhatIsNoOrder) {
  for (const char* order : {"[0, 1]", "[0, 1, 1]", "[0, 1, 3]", "[0, 1, 2, 3]"}) {
    EXPECT_THAT(ScheduledText(kReadAcross, absl::StrCat("permute_axes(t2, ", order, ")\n")),
                HasSubstr(absl::StrCat(order, " is no order of the 3 dimensions of t2")));
  }
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

// kOnePass where t3 is a fourth input.
std::string OnePassOfFourInputs(const std::string& more) {
  return absl::StrCat(absl::StrReplaceAll(kOnePass, {{"t9", "t10"},
                                                     {"t8", "t9"},
                                                     {"t7", "t8"},
                                                     {"t6", "t7"},
                                                     {"t5", "t6"},
                                                     {"t4", "t5"},
                                                     {"t3", "t4"}}),
                      more);
}

// Keys beyond each head's length come in the last blocks, too.
TEST(SkipMaskedTest, CausalWithLengths) {
  const std::string text = absl::StrReplaceAll(
      kAttention, {{"j <= i + 9", "j <= i + 9 && j < i64(n[h])"}, {") -> (o", ", n: i32[2]) -> (o"}});
  Check("skip_masked_lengths", text, OnePassOfFourInputs("skip_masked(t10.r0.0)\n"));
}

// A row's own length is another one in the same block.
TEST(SkipMaskedTest, RefusesLengthsOfRows) {
  const std::string text = absl::StrReplaceAll(
      kAttention, {{"j <= i + 9", "j < i64(n[h,i])"}, {") -> (o", ", n: i32[2,13]) -> (o"}});
  EXPECT_THAT(ScheduledText(text, OnePassOfFourInputs("skip_masked(t10.r0.0)\n")),
              HasSubstr("no mask empties iterations of loop t10.r0.0"));
}

// Rows with the most keys come first.
TEST(ReverseTest, Causal) {
  Check("reverse_causal", kAttention, absl::StrCat(kOnePass, "skip_masked(t9.r0.0)\nreverse(t9.a1.0)\n"));
}

// The keys at the diagonal come first. Ranges decide how many iterations there are.
TEST(ReverseTest, MaskedKeysFirst) {
  Check("reverse_keys", kAttention, absl::StrCat(kOnePass, "reverse(t9.r0.0)\nskip_masked(t9.r0.0)\n"));
}

TEST(ReverseTest, AReduction) { Check("reverse_reduction", kAttention, "reverse(t9.r0)\n"); }

// The first iteration is beyond the axis, and initializes the sum all the same.
TEST(ReverseTest, AReductionWhoseFirstTermIsGuarded) {
  const absl::Status status =
      CheckTrace("workload w(x: f32[3,16]) -> (s: f32[3]) { s[i] = sum[j:16](x[i,j]) }",
                 "split(t1.r0, [5])\nreverse(t1.r0.0)\nreverse(t1.r0.1)\n");
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(ReverseTest, RefusesAReductionThatIsUsedInTheLoop) {
  constexpr char kProduct[] =
      "workload w(x: f32[8,16], y: f32[16,8]) -> (c: f32[8,8]) {\n"
      "  s[i,j]: f32[8,8] = sum[k:16](x[i,k] * y[k,j])\n  c[i,j] = s[i,j] * 2.0\n}";
  const auto refusal = HasSubstr("whose first or last iteration differs from the others");
  const std::string parts =
      "split(t2.r0, [4])\nreorder([t2.r0.0, t2.a0, t2.a1, t2.r0.1])\ncache_write(t2, t2.a0)\n";
  EXPECT_THAT(ScheduledText(kProduct, absl::StrCat(parts, "reverse(t2.r0.0)\n")), refusal);
  EXPECT_THAT(ScheduledText(kProduct, absl::StrCat(parts, "reverse(t2.r0.1)\n")), Not(refusal));
  EXPECT_THAT(ScheduledText(kProduct, "reverse_compute_at(t3, t2.a1)\nreverse(t2.r0)\n"), Not(refusal));
  EXPECT_THAT(ScheduledText(kProduct,
                            "reorder([t2.a0, t2.r0, t2.a1])\nreverse_compute_at(t3, t2.a1)\n"
                            "reverse(t2.r0)\n"),
              refusal);
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

// Keys up to a length, which is data of either type. An i64 may be far from all sizes.
TEST(SkipMaskedTest, Lengths) {
  const auto scheduled = [](const std::string& length, const std::string& key) {
    const std::string text = absl::Substitute(R"(workload w(x: f32[3,40], n: $0[3]) -> (m: f32[3]) {
  m[i] = max[j:40](select($1 < n[i], x[i,j], -inf))
})",
                                              length, key);
    return ScheduledText(text, "split(t2.r0, [8])\nskip_masked(t2.r0.0)\n");
  };
  EXPECT_THAT(scheduled("i32", "i32(j)"),
              HasSubstr("for t2.r0.0 in max(0, min(5, (i64(t1[t2.a0]) + 7) // 8))"));
  EXPECT_THAT(scheduled("i64", "j"),
              HasSubstr("min(2305843009213693952, max(-2305843009213693952, t1[t2.a0]))"));
}

// z reads the maximum and the sum: as the first output it stands before the weighted sum.
constexpr char kLogSumExpFirst[] =
    R"(workload attention(q: f32[2,13,8], k: f32[2,22,8], v: f32[2,22,6]) -> (z: f32[2,13], o: f32[2,13,6]) {
  s[h,i,j]: f32[2,13,22] = sum[d:8](q[h,i,d] * k[h,j,d])
  m[h,i]: f32[2,13] = max[j:22](s[h,i,j])
  e[h,i,j]: f32[2,13,22] = exp(s[h,i,j] - m[h,i])
  l[h,i]: f32[2,13] = sum[j:22](e[h,i,j])
  z[h,i] = log(l[h,i]) + m[h,i]
  o[h,i,d] = sum[j:22](e[h,i,j] * v[h,j,d])
})";

TEST(StreamTest, ReadersBeforeTheLoopMoveBehindIt) {
  const std::string steps = R"(split(t8.r0, [8])
reorder([t8.a0, t8.r0.0, t8.a1, t8.a2, t8.r0.1])
cache_write(t8, t8.a0)
stream_reduction(t6, t8.r0.0)
compute_at(t5, t8.r0.0)
stream_reduction(t4, t8.r0.0)
compute_at(t3, t8.r0.0)
)";
  const absl::Status status = CheckTrace(kLogSumExpFirst, steps);
  EXPECT_TRUE(status.ok()) << status.message();
  const std::string text = ScheduledText(kLogSumExpFirst, steps);
  EXPECT_LT(text.find("block t8:"), text.find("block t7:")) << text;
}

// The exponentials divided by their sum are what the loop adds up.
TEST(StreamTest, RefusesReadersThatTheLoopNeeds) {
  EXPECT_THAT(ScheduledText(kAttention, R"(inline(t4)
split(t9.r0, [8])
reorder([t9.a0, t9.r0.0, t9.a1, t9.a2, t9.r0.1])
cache_write(t9, t9.a0)
stream_reduction(t7, t9.r0.0)
)"),
              HasSubstr("t9 in the nest of loop t9.r0.0 reads what is computed from t7 before that loop"));
}

// The sum of exponentials stands after the weighted sum, which does not read it.
TEST(StreamTest, ReductionsAfterTheLoop) {
  const std::string text = absl::StrReplaceAll(
      kLogSumExpFirst, {{"(z: f32[2,13], o: f32[2,13,6])", "(o: f32[2,13,6], z: f32[2,13])"}});
  const absl::Status status = CheckTrace(text, R"(split(t6.r0, [8])
reorder([t6.a0, t6.r0.0, t6.a1, t6.a2, t6.r0.1])
cache_write(t6, t6.a0)
stream_reduction(t7, t6.r0.0)
compute_at(t5, t6.r0.0)
stream_reduction(t4, t6.r0.0)
compute_at(t3, t6.r0.0)
)");
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace mycc
