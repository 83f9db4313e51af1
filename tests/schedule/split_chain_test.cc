// split_chain: chains in parts of their axis and the merge of the parts, heads that share a tile, and
// refusals in words. The interpreter compares each with the workload's reference.
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

// Two groups of three heads, two queries each; the first queries see nothing of the last part.
constexpr char kGrouped[] =
    R"(workload grouped(q: f32[2,6,2,8], k: f32[2,2,24,8], v: f32[2,2,24,5]) -> (o: f32[2,6,2,5], z: f32[2,6,2]) {
  s[b,h,i,j]: f32[2,6,2,24] = sum[d:8](q[b,h,i,d] * k[b,h//3,j,d])
  c[b,h,i,j]: f32[2,6,2,24] = select(j <= i + 11, s[b,h,i,j] * 0.35, -inf)
  m[b,h,i]: f32[2,6,2] = max[j:24](c[b,h,i,j])
  e[b,h,i,j]: f32[2,6,2,24] = exp(c[b,h,i,j] - m[b,h,i])
  l[b,h,i]: f32[2,6,2] = sum[j:24](e[b,h,i,j])
  t[b,h,i,d]: f32[2,6,2,5] = sum[j:24](e[b,h,i,j] * v[b,h//3,j,d])
  o[b,h,i,d] = t[b,h,i,d] / l[b,h,i]
  z[b,h,i] = log(l[b,h,i]) + m[b,h,i]
})";

void Check(const std::string& name, const std::string& workload, const std::string& steps) {
  const absl::Status status = CheckTrace(workload, steps);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(MatchesGolden("schedule/" + name, ScheduledText(workload, steps)));
}

TEST(SplitChainTest, GroupedHeads) { Check("split_chain_grouped", kGrouped, "split_chain(t7, 3, 6, 8)\n"); }

TEST(SplitChainTest, HeadsApart) {
  const absl::Status status = CheckTrace(kGrouped, "split_chain(t7, 1, 2, 12)\n");
  EXPECT_TRUE(status.ok()) << status.message();
}

// The weights are divided before the second product: the factor leaves the parts' sums.
TEST(SplitChainTest, EarlyDivision) {
  Check("split_chain_early_division",
        R"(workload early(q: f32[4,3,8], k: f32[4,12,8], v: f32[4,12,5]) -> (o: f32[4,3,5]) {
  s[h,i,j]: f32[4,3,12] = sum[d:8](q[h,i,d] * k[h,j,d])
  m[h,i]: f32[4,3] = max[j:12](s[h,i,j])
  e[h,i,j]: f32[4,3,12] = exp(s[h,i,j] - m[h,i])
  l[h,i]: f32[4,3] = sum[j:12](e[h,i,j])
  p[h,i,j]: f32[4,3,12] = e[h,i,j] / l[h,i]
  o[h,i,d] = sum[j:12](p[h,i,j] * v[h,j,d])
})",
        "split_chain(t8, 1, 4, 6)\n");
}

// A row without any key that it sees has sums of 0, since the model guards its maximum.
TEST(SplitChainTest, GuardedMaximum) {
  const absl::Status status = CheckTrace(
      R"(workload guarded(q: f32[4,3,8], k: f32[4,12,8], v: f32[4,12,5]) -> (o: f32[4,3,5]) {
  s[h,i,j]: f32[4,3,12] = sum[d:8](q[h,i,d] * k[h,j,d])
  c[h,i,j]: f32[4,3,12] = select(j < i * 4, s[h,i,j], -inf)
  m[h,i]: f32[4,3] = max[j:12](c[h,i,j])
  g[h,i]: f32[4,3] = select(m[h,i] == -inf, 0.0, m[h,i])
  x[h,i,j]: f32[4,3,12] = c[h,i,j] - g[h,i]
  e[h,i,j]: f32[4,3,12] = exp(x[h,i,j])
  o[h,i,d] = sum[j:12](e[h,i,j] * v[h,j,d])
})",
      "split_chain(t9, 1, 3, 4)\n");
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(SplitChainTest, PaddedRows) {
  Check("split_chain_padded_rows", kGrouped, "split_chain(t7, 3, 16, 12)\n");
}

// Rows of the padding read no bias beyond the last row's.
constexpr char kBiased[] =
    R"(workload biased(q: f32[4,3,8], k: f32[4,12,8], v: f32[4,12,5], r: f32[3,12]) -> (o: f32[4,3,5], z: f32[4,3]) {
  s[h,i,j]: f32[4,3,12] = sum[d:8](q[h,i,d] * k[h,j,d])
  c[h,i,j]: f32[4,3,12] = s[h,i,j] + r[i,j]
  m[h,i]: f32[4,3] = max[j:12](c[h,i,j])
  e[h,i,j]: f32[4,3,12] = exp(c[h,i,j] - m[h,i])
  l[h,i]: f32[4,3] = sum[j:12](e[h,i,j])
  z[h,i] = log(l[h,i]) + m[h,i]
  t[h,i,d]: f32[4,3,5] = sum[j:12](e[h,i,j] * v[h,j,d])
  o[h,i,d] = t[h,i,d] / l[h,i]
})";

TEST(SplitChainTest, PaddedRowsOfHeadsApart) {
  const absl::Status status = CheckTrace(kBiased, "split_chain(t8, 1, 16, 4)\n");
  EXPECT_TRUE(status.ok()) << status.message();
}

// The sum has the shape of a tile: as many values as keys.
TEST(SplitChainTest, AsManyValuesAsKeys) {
  const std::string text = absl::StrReplaceAll(kGrouped, {{"24,5]", "24,24]"}, {"2,6,2,5]", "2,6,2,24]"}});
  const absl::Status status = CheckTrace(text, "split_chain(t7, 3, 6, 8)\n");
  EXPECT_TRUE(status.ok()) << status.message();
}

// A reduction along the values, in the shape of one along the keys, is none of the chain's.
TEST(SplitChainTest, ReductionsOfTheSum) {
  const absl::Status status = CheckTrace(
      R"(workload normalized(q: f32[4,3,8], k: f32[4,12,8], v: f32[4,12,12]) -> (t: f32[4,3,12], x: f32[4,3]) {
  s[h,i,j]: f32[4,3,12] = sum[d:8](q[h,i,d] * k[h,j,d])
  m[h,i]: f32[4,3] = max[j:12](s[h,i,j])
  e[h,i,j]: f32[4,3,12] = exp(s[h,i,j] - m[h,i])
  t[h,i,d] = sum[j:12](e[h,i,j] * v[h,j,d])
  x[h,i] = max[d:12](t[h,i,d])
})",
      "split_chain(t6, 1, 3, 4)\n");
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(SplitChainTest, ScoresOverTwoAxes) {
  const absl::Status status = CheckTrace(
      R"(workload deep(q: f32[4,3,8,2], k: f32[4,12,8,2], v: f32[4,12,5]) -> (t: f32[4,3,5], l: f32[4,3]) {
  s[h,i,j]: f32[4,3,12] = sum[d:8, x:2](q[h,i,d,x] * k[h,j,d,x])
  m[h,i]: f32[4,3] = max[j:12](s[h,i,j])
  e[h,i,j]: f32[4,3,12] = exp(s[h,i,j] - m[h,i])
  l[h,i] = sum[j:12](e[h,i,j])
  t[h,i,d] = sum[j:12](e[h,i,j] * v[h,j,d])
})",
      "split_chain(t6, 1, 16, 4)\n");
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(SplitChainTest, RefusesChainsWithoutRows) {
  EXPECT_THAT(
      ScheduledText(absl::StrReplaceAll(kGrouped, {{"2,6,2", "2,6,0"}}), "split_chain(t7, 3, 16, 8)\n"),
      HasSubstr("t7 has no rows"));
}

TEST(SplitChainTest, PartsOfParts) {
  const absl::Status status = CheckTrace(kBiased, "split_chain(t8, 1, 3, 4)\nsplit_chain(t8.p, 1, 3, 2)\n");
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(SplitChainTest, RefusesNamesThatExist) {
  EXPECT_THAT(ScheduledText(kBiased, "split_chain(t8, 1, 4, 4)\nsplit_chain(t8.p, 1, 8, 2)\n"),
              HasSubstr("t4.q, a tensor of parts of t8.p, exists already"));
}

// One pass computes all parts: what merges the reductions, and reads them, comes after it.
TEST(SplitChainTest, ReadersOfReductionsComeAfterTheParts) {
  const std::string text = ScheduledText(kBiased, "split_chain(t8, 1, 3, 4)\n");
  for (const char* merged : {"block t6:", "block t6.f:", "block t9:", "block t10:"}) {
    ASSERT_NE(text.find(merged), std::string::npos) << text;
    EXPECT_LT(text.find("block t8.p:"), text.find(merged)) << merged;
  }
}

// The last part has 10 of its 14 keys for itself.
TEST(SplitChainTest, UnevenParts) {
  Check("split_chain_uneven_parts", kGrouped, "split_chain(t7, 3, 6, 14)\n");
}

TEST(SplitChainTest, RefusesInWords) {
  const std::pair<const char*, const char*> refusals[] = {
      {"split_chain(t7, 3, 4611686018427387904, 8)\n",
       "expected at least the 6 of t7, and at most 1024 more"},
      {"split_chain(t7, 3, 4, 8)\n", "tiles of 4 rows; expected at least the 6 of t7"},
      {"split_chain(t7, 3, 6, 25)\n", "parts of 25; expected 1 to the 24 of the axis of t7"},
      {"split_chain(t7, 2, 6, 8)\n", "2 heads of t7 do not have the same keys; expected a divisor of 3"},
      {"split_chain(t5, 1, 2, 8)\n", "t5 does not end a chain of stages along one axis"},
      {"split(t7.r0, [8])\nsplit_chain(t7, 1, 2, 8)\n", "t7 has been scheduled already"},
  };
  for (const auto& [steps, words] : refusals) EXPECT_THAT(ScheduledText(kGrouped, steps), HasSubstr(words));
}

TEST(SplitChainTest, RefusesAValueWithoutACorrection) {
  const std::string text =
      absl::StrReplaceAll(kGrouped, {{"exp(c[b,h,i,j] - m[b,h,i])", "tanh(c[b,h,i,j] - m[b,h,i])"}});
  EXPECT_THAT(ScheduledText(text, "split_chain(t7, 1, 2, 8)\n"), HasSubstr("depends on t5"));
}

}  // namespace
}  // namespace mycc
