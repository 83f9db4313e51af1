// Points from traces, exactly and fitted to another shape.
#include "tuner/space/refit.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "tests/tuner/schedules.h"
#include "tests/tuner/synthetic_space.h"

namespace mycc {
namespace {

std::vector<Sketch> Sketches() {
  return {SketchOf("tile", {{"m", {1, 2, 4, 8}}, {"n", {8, 16, 48}}, {"order", {0, 1, 7}, false}},
                   [](const Choice& c) { return c[0] + c[1] < 5; }),
          SketchOf("copy", {{"vector", {0, 4, 8}}})};
}

Trace TraceOf(std::string sketch, std::vector<std::pair<std::string, int64_t>> decisions) {
  Trace trace;
  trace.sketch = std::move(sketch);
  trace.decisions = std::move(decisions);
  return trace;
}

TEST(RefitTest, PointsComeBackExactly) {
  const std::vector<Sketch> sketches = Sketches();
  EXPECT_EQ(PointOf(TraceOf("tile", {{"m", 4}, {"n", 8}, {"order", 7}}), sketches), (Point{0, {2, 0, 2}}));
  EXPECT_EQ(PointOf(TraceOf("tile", {{"order", 7}, {"n", 8}, {"m", 4}}), sketches), (Point{0, {2, 0, 2}}));
  EXPECT_EQ(PointOf(*sketches[1].instantiate({2}), sketches), (Point{1, {2}}));
  EXPECT_EQ(PointOf(TraceOf("tile", {{"m", 3}, {"n", 8}, {"order", 7}}), sketches), std::nullopt);
  EXPECT_EQ(PointOf(TraceOf("tile", {{"m", 4}, {"n", 8}}), sketches), std::nullopt);
  EXPECT_EQ(PointOf(TraceOf("gemm", {{"m", 4}}), sketches), std::nullopt);
  EXPECT_EQ(PointOf(TraceOf("", {}), sketches), std::nullopt);
}

TEST(RefitTest, OrderedDecisionsTakeTheNearestByRatio) {
  const std::vector<Sketch> sketches = Sketches();
  EXPECT_EQ(Refit(TraceOf("tile", {{"m", 3}, {"n", 30}, {"order", 1}}), sketches), (Point{0, {2, 2, 1}}));
  EXPECT_EQ(Refit(TraceOf("tile", {{"m", 100}, {"n", 1}, {"order", 1}}), sketches), (Point{0, {3, 0, 1}}));
}

TEST(RefitTest, WhatIsMissingOrUnknownIsTheDefaults) {
  const std::vector<Sketch> sketches = Sketches();
  EXPECT_EQ(Refit(TraceOf("tile", {{"n", 16}, {"order", 5}, {"gone", 3}}), sketches), (Point{0, {0, 1, 0}}));
  EXPECT_EQ(Refit(TraceOf("gemm", {{"n", 16}}), sketches), std::nullopt);
}

// 8 x 48 is illegal. 4 x 48 is nearer to it than 8 x 16, and than 8 x 8, which is the default's n.
TEST(RefitTest, AnIllegalCombinationGivesTheNearestLegalOne) {
  const std::vector<Sketch> sketches = Sketches();
  const auto point = Refit(TraceOf("tile", {{"m", 8}, {"n", 48}, {"order", 7}}), sketches);
  EXPECT_EQ(point, (Point{0, {2, 2, 2}}));
  EXPECT_TRUE(sketches[0].space.Legal(point->choice));
}

// Beside every other legal point, in a space whose constraint couples all decisions.
TEST(RefitTest, NoLegalPointIsNearer) {
  const std::vector<int64_t> sizes = {1, 2, 3, 6, 8, 16, 24, 64};
  const auto product = [sizes](const Choice& c) { return sizes[c[0]] * sizes[c[1]] * sizes[c[2]]; };
  const std::vector<Sketch> sketches = {
      SketchOf("tile", {{"a", sizes}, {"b", sizes}, {"c", sizes}},
               [product](const Choice& c) { return product(c) <= 96 && product(c) % 3 == 0; })};
  const auto distance = [&](const Choice& c, const std::vector<double>& wanted) {
    double sum = 0;
    for (size_t d = 0; d < 3; ++d) sum += std::abs(std::log(static_cast<double>(sizes[c[d]]) / wanted[d]));
    return sum;
  };
  for (const std::vector<int64_t>& wanted : {std::vector<int64_t>{16, 16, 16}, {5, 7, 1}, {64, 64, 64}}) {
    const auto point =
        Refit(TraceOf("tile", {{"a", wanted[0]}, {"b", wanted[1]}, {"c", wanted[2]}}), sketches);
    ASSERT_TRUE(point && sketches[0].space.Legal(point->choice));
    const std::vector<double> values(wanted.begin(), wanted.end());
    Choice c(3);
    for (c[0] = 0; c[0] < 8; ++c[0])
      for (c[1] = 0; c[1] < 8; ++c[1])
        for (c[2] = 0; c[2] < 8; ++c[2]) {
          if (sketches[0].space.Legal(c)) {
            EXPECT_LE(distance(point->choice, values), distance(c, values) + 1e-9);
          }
        }
  }
}

// Nearly everything is illegal: the point is legal still, and has what the default leaves free.
TEST(RefitTest, AFarLegalPointIsReachedFromTheDefault) {
  std::vector<Decision> decisions;
  for (int d = 0; d < 12; ++d) decisions.push_back({absl::StrCat("d", d), {1, 2, 4, 8, 16, 32}});
  const std::vector<Sketch> sketches = {SketchOf(
      "deep", decisions, [](const Choice& c) { return std::count(c.begin() + 1, c.end(), 0) == 11; })};
  Trace trace = TraceOf("deep", {});
  for (const Decision& decision : decisions) trace.decisions.emplace_back(decision.name, 16);
  EXPECT_EQ(Refit(trace, sketches), (Point{0, {4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}));
}

TEST(RefitTest, DecisionsOfOneShapeServeAnother) {
  const Target target = Avx2Target();
  const auto sketches = [&](int m, int n, int k) {
    return GenerateSketches(Canonicalize(*ParseWorkload(GemmText(m, n, k), "test")), target);
  };
  const std::vector<Sketch> large = sketches(512, 512, 512), small = sketches(100, 60, 77);
  const Trace trace = *large[0].instantiate(large[0].default_choice);
  EXPECT_EQ(PointOf(trace, large), (Point{0, large[0].default_choice}));
  const auto point = Refit(trace, small);
  ASSERT_TRUE(point.has_value());
  EXPECT_TRUE(small[0].space.Legal(point->choice));
  EXPECT_TRUE(small[0].instantiate(point->choice).ok());
}

}  // namespace
}  // namespace mycc
