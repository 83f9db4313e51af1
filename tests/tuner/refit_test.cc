// Points from traces, exactly and fitted to another shape.
#include "tuner/space/refit.h"

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

TEST(RefitTest, IllegalCombinationsFallBackFromTheLastDecision) {
  const std::vector<Sketch> sketches = Sketches();
  const auto point = Refit(TraceOf("tile", {{"m", 8}, {"n", 48}, {"order", 7}}), sketches);
  EXPECT_EQ(point, (Point{0, {3, 0, 0}}));
  EXPECT_TRUE(sketches[0].space.Legal(point->choice));
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
