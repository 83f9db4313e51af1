// The rule for chains along one axis: which chains are found, and that default and random points of their
// spaces compute what the stages say.
#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"
#include "tests/tuner/points.h"
#include "tuner/space/space.h"
#include "tuner/space/stream_chain.h"

namespace mycc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kCausal[] =
    R"(workload causal(q: f32[1,60,32], k: f32[1,70,32], v: f32[1,70,40]) -> (o: f32[1,60,40], lse: f32[1,60]) {
  s[h,i,j]: f32[1,60,70] = sum[d:32](q[h,i,d] * k[h,j,d])
  c[h,i,j]: f32[1,60,70] = select(j <= i + 10 && j + 20 > i, s[h,i,j] * 0.125, -inf)
  m[h,i]: f32[1,60] = max[j:70](c[h,i,j])
  e[h,i,j]: f32[1,60,70] = exp(c[h,i,j] - m[h,i])
  l[h,i]: f32[1,60] = sum[j:70](e[h,i,j])
  o32[h,i,d]: f32[1,60,40] = sum[j:70](e[h,i,j] * v[h,j,d])
  o[h,i,d] = o32[h,i,d] / l[h,i]
  lse[h,i] = m[h,i] + log(l[h,i])
})";

constexpr char kSoftCap[] =
    R"(workload softcap(q: f32[2,50,16], k: f32[2,33,16], v: f32[2,33,24], b: f32[50,33]) -> (o: f32[2,50,24]) {
  s[h,i,j]: f32[2,50,33] = sum[d:16](q[h,i,d] * k[h,j,d])
  c[h,i,j]: f32[2,50,33] = 20.0 * tanh(s[h,i,j] / 20.0) + b[i,j]
  m[h,i]: f32[2,50] = max[j:33](c[h,i,j])
  e[h,i,j]: f32[2,50,33] = exp(c[h,i,j] - m[h,i])
  l[h,i]: f32[2,50] = sum[j:33](e[h,i,j])
  r[h,i]: f32[2,50] = 1.0 / l[h,i]
  p[h,i,j]: f32[2,50,33] = e[h,i,j] * r[h,i]
  o[h,i,d] = sum[j:33](p[h,i,j] * v[h,j,d])
})";

constexpr char kGrouped[] =
    R"(workload grouped(q: f32[2,6,40,16], k: f32[2,2,33,16], v: f32[2,2,33,16]) -> (o: f32[2,6,40,16]) {
  s[b,h,i,j]: f32[2,6,40,33] = sum[d:16](q[b,h,i,d] * k[b,h//3,j,d])
  m[b,h,i]: f32[2,6,40] = max[j:33](s[b,h,i,j])
  e[b,h,i,j]: f32[2,6,40,33] = exp((s[b,h,i,j] - m[b,h,i]) * 0.25)
  l[b,h,i]: f32[2,6,40] = sum[j:33](e[b,h,i,j])
  p[b,h,i,j]: f32[2,6,40,33] = e[b,h,i,j] / l[b,h,i]
  o[b,h,i,d] = sum[j:33](p[b,h,i,j] * v[b,h//3,j,d])
})";

constexpr char kPositionFirst[] =
    R"(workload position_first(q: f32[2,40,3,16], k: f32[2,33,3,16], v: f32[2,33,3,16]) -> (o: f32[2,40,3,16]) {
  s[b,h,i,j]: f32[2,3,40,33] = sum[d:16](q[b,i,h,d] * k[b,j,h,d])
  m[b,h,i]: f32[2,3,40] = max[j:33](s[b,h,i,j])
  e[b,h,i,j]: f32[2,3,40,33] = exp(s[b,h,i,j] - m[b,h,i])
  l[b,h,i]: f32[2,3,40] = sum[j:33](e[b,h,i,j])
  p[b,h,i,j]: f32[2,3,40,33] = e[b,h,i,j] / l[b,h,i]
  o[b,i,h,d] = sum[j:33](p[b,h,i,j] * v[b,j,h,d])
})";

constexpr char kLengths[] =
    R"(workload lengths(q: f32[2,20,16], k: f32[2,33,16], v: f32[2,33,16], n: i32[2]) -> (o: f32[2,20,16]) {
  s[h,i,j]: f32[2,20,33] = sum[d:16](q[h,i,d] * k[h,j,d])
  c[h,i,j]: f32[2,20,33] = select(i32(j) < n[h], s[h,i,j], -inf)
  m[h,i]: f32[2,20] = max[j:33](c[h,i,j])
  e[h,i,j]: f32[2,20,33] = exp(c[h,i,j] - m[h,i])
  l[h,i]: f32[2,20] = sum[j:33](e[h,i,j])
  o32[h,i,d]: f32[2,20,16] = sum[j:33](e[h,i,j] * v[h,j,d])
  o[h,i,d] = o32[h,i,d] / l[h,i]
})";

// Masks as large as the scores, which are turned over with them. One lies along the rows already.
constexpr char kMasks[] =
    R"(workload masks(q: f32[2,3,40,16], k: f32[2,3,33,16], v: f32[2,3,33,16], a: bool[2,40,33], b: f32[3,40,33], t: f32[33,40]) -> (o: f32[2,3,40,16]) {
  s[b0,h,i,j]: f32[2,3,40,33] = sum[d:16](q[b0,h,i,d] * k[b0,h,j,d])
  c[b0,h,i,j]: f32[2,3,40,33] = select(a[b0,i,j], s[b0,h,i,j] * 0.25 + t[j,i], -inf)
  x[b0,h,i,j]: f32[2,3,40,33] = tanh(c[b0,h,i,j]) + b[h,i,j]
  m[b0,h,i]: f32[2,3,40] = max[j:33](x[b0,h,i,j])
  e[b0,h,i,j]: f32[2,3,40,33] = exp(x[b0,h,i,j] - m[b0,h,i])
  l[b0,h,i]: f32[2,3,40] = sum[j:33](e[b0,h,i,j])
  p[b0,h,i,j]: f32[2,3,40,33] = e[b0,h,i,j] / l[b0,h,i]
  o[b0,h,i,d] = sum[j:33](p[b0,h,i,j] * v[b0,h,j,d])
})";

// The queries of several heads share keys, and stand between positions and heads: rows have two axes.
constexpr char kTwoRowAxes[] =
    R"(workload rows(q: f32[40,2,3,16], k: f32[33,2,16], v: f32[33,2,16]) -> (o: f32[40,2,3,16]) {
  s[h,g,i,j]: f32[2,3,40,33] = sum[d:16](q[i,h,g,d] * k[j,h,d])
  m[h,g,i]: f32[2,3,40] = max[j:33](s[h,g,i,j])
  e[h,g,i,j]: f32[2,3,40,33] = exp(s[h,g,i,j] - m[h,g,i])
  l[h,g,i]: f32[2,3,40] = sum[j:33](e[h,g,i,j])
  p[h,g,i,j]: f32[2,3,40,33] = e[h,g,i,j] / l[h,g,i]
  o[i,h,g,d] = sum[j:33](p[h,g,i,j] * v[j,h,d])
})";

void CheckStreamed(const char* text, const Target& target = TestTarget(), double tolerance = 1e-4) {
  const Workload workload = CanonicalWorkload(text);
  const std::vector<Sketch> sketches = GenerateSketches(workload, target);
  ASSERT_THAT(sketches.front().name, StartsWith("streamed"));
  EXPECT_GT(CheckPoints(workload, sketches.front(), target, tolerance), 3);
  // The stages one by one are a sketch, too.
  EXPECT_TRUE(
      std::ranges::any_of(sketches, [](const Sketch& sketch) { return !IsStreamedSketch(sketch.name); }));
}

TEST(StreamedRuleTest, CausalWithLogSumExp) { CheckStreamed(kCausal); }
TEST(StreamedRuleTest, SoftCapAndBias) { CheckStreamed(kSoftCap); }
TEST(StreamedRuleTest, GroupedQueries) { CheckStreamed(kGrouped); }
TEST(StreamedRuleTest, PositionsBeforeHeads) { CheckStreamed(kPositionFirst); }

// The sum has heads first, or its reader alone has not.
TEST(StreamedRuleTest, ResultsWithPositionsBeforeHeads) {
  constexpr char kText[] =
      R"(workload results(q: T[1,2,40,16], k: T[1,2,33,16], v: T[1,2,33,16]) -> (o: T[1,40,2,16]) {
  s[b,h,i,j]: f32[1,2,40,33] = sum[d:16](f32(q[b,h,i,d]) * f32(k[b,h,j,d]))
  m[b,h,i]: f32[1,2,40] = max[j:33](s[b,h,i,j])
  e[b,h,i,j]: f32[1,2,40,33] = exp(s[b,h,i,j] - m[b,h,i])
  l[b,h,i]: f32[1,2,40] = sum[j:33](e[b,h,i,j])
  t[SUM]: f32[1,SHAPE,16] = sum[j:33](f32(T(e[b,h,i,j])) * f32(v[b,h,j,d]))
  o[b,i,h,d] = T(t[SUM] / l[b,h,i])
})";
  const absl::StatusOr<Target> amx =
      ParseTarget("v1 cpu mcpu=sapphirerapids features=+amx-bf16,+amx-int8 l1d=48K l2=2M threads=2");
  ASSERT_TRUE(amx.ok()) << amx.status();
  for (const bool sum_first : {false, true}) {
    const auto text = [&](const char* type) {
      return absl::StrReplaceAll(
          kText,
          {{"T", type}, {"SUM", sum_first ? "b,i,h,d" : "b,h,i,d"}, {"SHAPE", sum_first ? "40,2" : "2,40"}});
    };
    CheckStreamed(text("f32").c_str());
    CheckStreamed(text("bf16").c_str(), *amx, 3e-2);
  }
}
TEST(StreamedRuleTest, LengthsOfData) { CheckStreamed(kLengths); }

TEST(StreamedRuleTest, MasksAlongTheAxis) { CheckStreamed(kMasks); }
TEST(StreamedRuleTest, RowsOfTwoAxes) { CheckStreamed(kTwoRowAxes); }

// With a row that sees nothing, whose maximum is -inf. Each form is R, and a number where R is -inf.
TEST(StreamedRuleTest, GuardedMaxima) {
  for (const char* guard : {"select(m[h,i] == -inf, 0.0, m[h,i])", "select(m[h,i] > -inf, m[h,i], 0.0)",
                            "select(m[h,i] != -inf, m[h,i], 1.0)", "max(m[h,i], -3.4028234663852886e38)"}) {
    SCOPED_TRACE(guard);
    std::string text = kLengths;
    text.replace(text.find("- m[h,i]"), 8, std::string("- ") + guard);
    text.replace(text.find("/ l[h,i]"), 8, "/ max(l[h,i], 1.0e-30)");
    CheckStreamed(text.c_str());
  }
}

// Weights that are relative to no maximum: nothing is corrected.
TEST(StreamedRuleTest, ExponentialsWithoutAMaximum) {
  std::string text = kLengths;
  text.replace(text.find("  m[h,i]"), text.find("  e[h,i,j]") - text.find("  m[h,i]"), "");
  text.replace(text.find(" - m[h,i]"), 9, "");
  text.replace(text.find("/ l[h,i]"), 8, "/ max(l[h,i], 1.0e-30)");
  CheckStreamed(text.c_str());
}

constexpr char kNarrow[] =
    R"(workload narrow(q: bf16[1,50,32], k: bf16[1,70,32], v: bf16[1,70,48]) -> (o: bf16[1,50,48]) {
  s[h,i,j]: f32[1,50,70] = sum[d:32](f32(q[h,i,d]) * f32(k[h,j,d]))
  c[h,i,j]: f32[1,50,70] = select(j <= i + 20, s[h,i,j] * 0.25, -inf)
  m[h,i]: f32[1,50] = max[j:70](c[h,i,j])
  e[h,i,j]: f32[1,50,70] = exp(c[h,i,j] - m[h,i])
  l[h,i]: f32[1,50] = sum[j:70](e[h,i,j])
  t[h,i,d]: f32[1,50,48] = sum[j:70](f32(bf16(e[h,i,j])) * f32(v[h,j,d]))
  o[h,i,d] = bf16(t[h,i,d] / l[h,i])
})";

// The weights are rounded inside the product: they become a tile of their own.
TEST(StreamedRuleTest, PairsInTileRegisters) {
  const absl::StatusOr<Target> amx =
      ParseTarget("v1 cpu mcpu=sapphirerapids features=+amx-bf16,+amx-int8 l1d=48K l2=2M threads=2");
  ASSERT_TRUE(amx.ok()) << amx.status();
  CheckStreamed(kNarrow, *amx, 2e-2);
}

TEST(StreamedRuleTest, PairsInDotProducts) {
  const absl::StatusOr<Target> dot = ParseTarget("v1 cpu mcpu=cooperlake l1d=32K l2=1M threads=2");
  ASSERT_TRUE(dot.ok()) << dot.status();
  CheckStreamed(kNarrow, *dot, 2e-2);
}

// Rows that see no key, by a number: all keys have the same weight. Exponents are differences first, since
// the product of such a number with log2(e) is rounded by more than a weight may be off, or overflows.
TEST(StreamedRuleTest, NumbersThatHideAllKeys) {
  const absl::StatusOr<Target> amx =
      ParseTarget("v1 cpu mcpu=sapphirerapids features=+amx-bf16,+amx-int8 l1d=48K l2=2M threads=2");
  ASSERT_TRUE(amx.ok()) << amx.status();
  for (const char* number : {"-1000000000.0", "-1e30", "-3.4028234663852886e38"}) {
    const auto hidden = [&](const char* text) {
      return absl::StrReplaceAll(
          text, {{"-inf", number}, {"j <= i + 10", "j <= i - 9"}, {"j <= i + 20", "j <= i - 9"}});
    };
    ASSERT_NE(hidden(kNarrow), kNarrow);
    CheckStreamed(hidden(kNarrow).c_str(), *amx, 2e-2);
    ASSERT_NE(hidden(kCausal), kCausal);
    CheckStreamed(hidden(kCausal).c_str());
  }
}

// Exporters divide by the sum, round the probabilities, and multiply then.
TEST(StreamedRuleTest, DividesBeforeItRounds) {
  const absl::StatusOr<Target> amx =
      ParseTarget("v1 cpu mcpu=sapphirerapids features=+amx-bf16,+amx-int8 l1d=48K l2=2M threads=2");
  ASSERT_TRUE(amx.ok()) << amx.status();
  CheckStreamed(R"(workload w(q: bf16[1,50,32], k: bf16[1,70,32], v: bf16[1,70,48]) -> (o: bf16[1,50,48]) {
  s[h,i,j]: f32[1,50,70] = sum[d:32](f32(q[h,i,d]) * f32(k[h,j,d]))
  c[h,i,j]: f32[1,50,70] = s[h,i,j] * 0.25
  m[h,i]: f32[1,50] = max[j:70](c[h,i,j])
  e[h,i,j]: f32[1,50,70] = exp(c[h,i,j] - m[h,i])
  l[h,i]: f32[1,50] = sum[j:70](e[h,i,j])
  p[h,i,j]: f32[1,50,70] = e[h,i,j] / l[h,i]
  n[h,i,j]: bf16[1,50,70] = bf16(p[h,i,j])
  t[h,i,d]: f32[1,50,48] = sum[j:70](f32(n[h,i,j]) * f32(v[h,j,d]))
  o[h,i,d] = bf16(t[h,i,d])
})",
                *amx, 2e-2);
}

int64_t SkipOf(const std::string& text) {
  const Sketch sketch = GenerateSketches(CanonicalWorkload(text), TestTarget()).front();
  for (const Decision& decision : sketch.space.decisions) {
    if (absl::EndsWith(decision.name, ".skip")) return decision.choices.front();
  }
  return -1;
}

// An i64 may be far from all sizes. Blocks beyond a length are left out, unless rows of a block have their
// own.
TEST(StreamedRuleTest, LengthsOfDataBoundTheLoop) {
  const std::string wide = absl::StrReplaceAll(kLengths, {{"n: i32[2]", "n: i64[2]"}, {"i32(j)", "j"}});
  CheckStreamed(wide.c_str());
  const std::string of_rows =
      absl::StrReplaceAll(kLengths, {{"n: i32[2]", "n: i32[2,20]"}, {"n[h]", "n[h,i]"}});
  CheckStreamed(of_rows.c_str());
  EXPECT_EQ(SkipOf(kLengths), 1);
  EXPECT_EQ(SkipOf(wide), 1);
  EXPECT_EQ(SkipOf(of_rows), 0);
}

std::optional<StreamChain> ChainOf(const std::string& text) {
  const Anatomy anatomy(CanonicalWorkload(text));
  for (int s = 0; s < anatomy.num_stages(); ++s) {
    if (std::optional<StreamChain> chain = FindStreamChain(anatomy, s)) return chain;
  }
  return std::nullopt;
}

TEST(StreamChainTest, NamesItsStages) {
  const std::optional<StreamChain> chain = ChainOf(kSoftCap);
  ASSERT_TRUE(chain.has_value());
  EXPECT_EQ(chain->tiles.size(), 3u);       // capped scores, exponentials, weights
  EXPECT_EQ(chain->reductions.size(), 2u);  // maximum, sum
  EXPECT_EQ(chain->rows.size(), 1u);        // one over the sum
  EXPECT_EQ(chain->row_axes, std::vector<int>({1}));
  EXPECT_EQ(chain->value_axes, std::vector<int>({2}));
  EXPECT_EQ(chain->batch_axes, std::vector<int>({0}));
  EXPECT_EQ(chain->stream_dim, 2);
}

// The probabilities are an output: they have to be written.
TEST(StreamChainTest, AnotherReaderOfATileEndsIt) {
  EXPECT_FALSE(ChainOf(R"(workload w(q: f32[9,8], k: f32[7,8], v: f32[7,5]) -> (p: f32[9,7], o: f32[9,5]) {
  s[i,j]: f32[9,7] = sum[d:8](q[i,d] * k[j,d])
  m[i]: f32[9] = max[j:7](s[i,j])
  e[i,j]: f32[9,7] = exp(s[i,j] - m[i])
  l[i]: f32[9] = sum[j:7](e[i,j])
  p[i,j] = e[i,j] / l[i]
  o[i,d] = sum[j:7](p[i,j] * v[j,d])
})")
                   .has_value());
}

// A table of the scores' shape that is not computed from them has other readers.
TEST(StreamChainTest, WhatDoesNotDependOnTheScoresIsNoMember) {
  const std::optional<StreamChain> chain = ChainOf(
      R"(workload w(q: f32[9,8], k: f32[7,8], v: f32[7,5], b: f32[9,7]) -> (t: f32[9,7], o: f32[9,5]) {
  t[i,j] = tanh(b[i,j])
  s[i,j]: f32[9,7] = sum[d:8](q[i,d] * k[j,d])
  x[i,j]: f32[9,7] = s[i,j] + t[i,j]
  m[i]: f32[9] = max[j:7](x[i,j])
  e[i,j]: f32[9,7] = exp(x[i,j] - m[i])
  l[i]: f32[9] = sum[j:7](e[i,j])
  p[i,j]: f32[9,7] = e[i,j] / l[i]
  o[i,d] = sum[j:7](p[i,j] * v[j,d])
})");
  ASSERT_TRUE(chain.has_value());
  EXPECT_EQ(chain->scores, 1);
  EXPECT_EQ(chain->Members().size(), 7u);
}

// A stage that reads data of the scores in another place than its own follows in a group of its own.
TEST(StreamChainTest, AnEpilogueReadsRowsAtItsOwnAxes) {
  const std::optional<StreamChain> chain =
      ChainOf(R"(workload w(q: f32[9,8], k: f32[9,8], v: f32[9,9]) -> (y: f32[9,9]) {
  s[i,j]: f32[9,9] = sum[d:8](q[i,d] * k[j,d])
  m[i]: f32[9] = max[j:9](s[i,j])
  e[i,j]: f32[9,9] = exp(s[i,j] - m[i])
  o[i,d]: f32[9,9] = sum[j:9](e[i,j] * v[j,d])
  x[i,d]: f32[9,9] = o[i,d] * m[i]
  y[i,d] = x[i,d] + m[d]
})");
  ASSERT_TRUE(chain.has_value());
  EXPECT_EQ(chain->epilogue, std::vector<int>({4}));
}

TEST(StreamChainTest, TheLongestRowsComeLast) {
  const std::optional<StreamChain> chain = ChainOf(kTwoRowAxes);
  ASSERT_TRUE(chain.has_value());
  EXPECT_EQ(chain->row_axes, std::vector<int>({2, 0}));
}

// Two products without a reduction between them are no chain.
TEST(StreamChainTest, NeedsAReduction) {
  EXPECT_FALSE(ChainOf(R"(workload w(q: f32[9,8], k: f32[7,8], v: f32[7,5]) -> (o: f32[9,5]) {
  s[i,j]: f32[9,7] = sum[d:8](q[i,d] * k[j,d])
  r[i,j]: f32[9,7] = max(s[i,j], 0.0)
  o[i,d] = sum[j:7](r[i,j] * v[j,d])
})")
                   .has_value());
}

// Weights that were turned over are no tile of the scores' rows.
TEST(StreamChainTest, RowsAreTheSameThroughout) {
  EXPECT_FALSE(ChainOf(R"(workload w(q: f32[9,8], k: f32[9,8], v: f32[9,5]) -> (o: f32[9,5]) {
  s[i,j]: f32[9,9] = sum[d:8](q[i,d] * k[j,d])
  m[i]: f32[9] = max[j:9](s[i,j])
  e[i,j]: f32[9,9] = exp(s[i,j] - m[j])
  o[i,d] = sum[j:9](e[i,j] * v[j,d])
})")
                   .has_value());
}

// The stages of an attention with something else in the place of one of them.
std::vector<std::string> WhyNot(const std::string& from, const std::string& to,
                                const Target& target = TestTarget(), const char* text = kLengths) {
  std::string changed = text;
  for (size_t at = changed.find(from); at != std::string::npos; at = changed.find(from, at + to.size()))
    changed.replace(at, from.size(), to);
  return WhyNotStreamed(CanonicalWorkload(changed), target);
}

TEST(WhyNotStreamedTest, SaysNothingOfOnePass) { EXPECT_THAT(WhyNot("o32", "t"), IsEmpty()); }

TEST(WhyNotStreamedTest, SaysNothingOfProductsApart) {
  EXPECT_THAT(WhyNotStreamed(CanonicalWorkload(R"(workload w(x: f32[9,8], k: f32[7,8]) -> (y: f32[9,7]) {
  y[i,j] = sum[d:8](x[i,d] * k[j,d])
})"),
                             TestTarget()),
              IsEmpty());
}

// A maximum that is raised is another number than the maximum: no correction of sums is known.
TEST(WhyNotStreamedTest, NamesWhatHasNoCorrection) {
  EXPECT_THAT(WhyNot("- m[h,i]", "- max(m[h,i], -3.0e38)"),
              ElementsAre(HasSubstr("max has no known correction")));
  EXPECT_THAT(WhyNot("exp(c[h,i,j] - m[h,i])", "pow(2.0, c[h,i,j] - m[h,i])"),
              ElementsAre(HasSubstr("depend on it differently")));
}

TEST(WhyNotStreamedTest, NamesWhatEndsTheChain) {
  EXPECT_THAT(WhyNot("(o: f32[2,20,16])", "(o: f32[2,20,16], e: f32[2,20,33])"),
              ElementsAre(HasSubstr("is an output, and has to be stored")));
  EXPECT_THAT(WhyNotStreamed(CanonicalWorkload(
                                 R"(workload w(q: f32[9,8], k: f32[7,8], v: f32[7,5]) -> (o: f32[9,5]) {
  s[i,j]: f32[9,7] = sum[d:8](q[i,d] * k[j,d])
  r[i,j]: f32[9,7] = max(s[i,j], 0.0)
  o[i,d] = sum[j:7](r[i,j] * v[j,d])
})"),
                             TestTarget()),
              ElementsAre(HasSubstr("no maximum or sum along the keys")));
}

TEST(WhyNotStreamedTest, NamesTheSumOfOtherTerms) {
  EXPECT_THAT(WhyNotStreamed(CanonicalWorkload(
                                 R"(workload w(q: f32[9,8], k: f32[7,8], v: f32[7,5]) -> (o: f32[9,5]) {
  s[i,j]: f32[9,7] = sum[d:8](q[i,d] * 0.5 * k[j,d])
  m[i]: f32[9] = max[j:7](s[i,j])
  e[i,j]: f32[9,7] = exp(s[i,j] - m[i])
  o[i,d] = sum[j:7](e[i,j] * v[j,d])
})"),
                             TestTarget()),
              ElementsAre(AllOf(HasSubstr("t3 adds up t0[a0,r0] * 0.5 * t1[a1,r0]"),
                                HasSubstr("a scale multiplies the sum"))));
}

TEST(WhyNotStreamedTest, NamesWhatTheRulesExpect) {
  const absl::StatusOr<Target> amx =
      ParseTarget("v1 cpu mcpu=sapphirerapids features=+amx-bf16,+amx-int8 l1d=48K l2=2M threads=2");
  ASSERT_TRUE(amx.ok()) << amx.status();
  EXPECT_THAT(WhyNot("bf16", "f16", *amx, kNarrow),
              ElementsAre(AllOf(HasSubstr("take f16 by f16"), HasSubstr("expected f32, or bf16,"))));
  EXPECT_THAT(WhyNot("f32(bf16(e[h,i,j]))", "e[h,i,j]", *amx, kNarrow),
              ElementsAre(AllOf(HasSubstr("f32 by bf16"), HasSubstr("round the weights, bf16("))));
}

}  // namespace
}  // namespace mycc
