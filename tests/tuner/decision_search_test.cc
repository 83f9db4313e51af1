// The model of decisions alone: what it interpolates, how sure it is, and what a search makes of it.
#include "tuner/search/decision_search.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/tuner/synthetic_space.h"
#include "tuner/search/gaussian_process.h"

namespace mycc {
namespace {

using Query = GaussianProcess::Query;

TEST(GaussianProcessTest, KnowsWhatItWasToldAndDoubtsTheRest) {
  GaussianProcess process({{11, true}, {3, false}});
  process.Fit({{0, 0}, {5, 0}, {10, 0}, {0, 1}, {10, 1}}, {1, 2, 3, 1, 3});
  const Query told = process.Ask({5, 0}), between = process.Ask({7, 0});
  EXPECT_NEAR(told.mean, 2, 0.05);
  EXPECT_GT(between.mean, 2);
  EXPECT_LT(between.mean, 3);
  EXPECT_LT(told.variance, between.variance);
}

TEST(GaussianProcessTest, AnAssumedRowChangesNoMeanAndSettlesItsNeighbours) {
  GaussianProcess process({{11, true}});
  process.Fit({{0}, {4}, {10}}, {1, 0, 2});
  Query at = process.Ask({7}), beside = process.Ask({8});
  const Query before = beside;
  process.Assume(at);
  process.Refresh(&at);
  process.Refresh(&beside);
  EXPECT_EQ(beside.mean, before.mean);
  EXPECT_LT(beside.variance, before.variance);
  EXPECT_LT(at.variance, 0.02 * before.variance);
  const Query anew = process.Ask({8});
  EXPECT_NEAR(anew.mean, beside.mean, 1e-12);
  EXPECT_NEAR(anew.variance, beside.variance, 1e-12);
}

TEST(GaussianProcessTest, LearnsWhichAxisMatters) {
  GaussianProcess process({{8, true}, {8, true}});
  std::vector<std::vector<int>> points;
  std::vector<double> values;
  for (int i = 0; i < 24; ++i) {
    points.push_back({i * 3 % 8, i * 5 / 3 % 8});
    values.push_back(points.back()[0] * 0.5);
  }
  process.Fit(points, values);
  for (int y = 0; y < 8; ++y) EXPECT_NEAR(process.Ask({6, y}).mean, 3, 0.4) << y;
}

TEST(GaussianProcessTest, AMeanAloneIsTheSameMean) {
  GaussianProcess process({{11, true}, {3, false}});
  process.Fit({{0, 0}, {5, 0}, {10, 0}, {0, 1}, {10, 1}}, {1, 2, 3, 1, 3});
  process.Assume(process.Ask({4, 2}));
  for (int x = 0; x < 11; ++x) {
    for (int name = 0; name < 3; ++name)
      EXPECT_NEAR(process.Mean({x, name}), process.Ask({x, name}).mean, 1e-9) << x << " " << name;
  }
}

// A part of the rows chooses the lengths; all of them are remembered.
TEST(GaussianProcessTest, OfManyRowsNoneIsForgotten) {
  GaussianProcess process({{20, true}, {20, true}});
  std::vector<std::vector<int>> points;
  std::vector<double> values;
  for (int i = 0; i < 240; ++i) {
    points.push_back({i % 20, i / 20});
    values.push_back(0.1 * (i % 20) + (i == 133 ? 4 : 0));
  }
  process.Fit(points, values);
  for (size_t i = 0; i < points.size(); ++i) EXPECT_NEAR(process.Ask(points[i]).mean, values[i], 0.8) << i;
  EXPECT_GT(process.Ask(points[133]).mean, 4.5);
}

TEST(GaussianProcessTest, WithoutRowsNothingIsKnown) {
  GaussianProcess process({{4, true}});
  process.Fit({}, {});
  EXPECT_EQ(process.Ask({2}).mean, 0);
  EXPECT_EQ(process.Mean({2}), 0);
  EXPECT_EQ(process.Ask({2}).variance, 1);
}

Sketch Line() {
  return SketchOf("line", {{"x", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}, {"mode", {0, 1, 2}, false}});
}

TEST(DecisionModelTest, FailuresNearbyMakeAPointPromiseLess) {
  const std::vector<Sketch> sketches = {Line()};
  DecisionModel model(sketches);
  model.Fit({{{0, {0, 0}}, 1e-3, {}},
             {{0, {5, 0}}, 5e-4, {}},
             {{0, {5, 1}}, 5e-4, {}},
             {{0, {5, 2}}, std::nullopt, {}},
             {{0, {7, 2}}, std::nullopt, {}}});
  EXPECT_GT(model.Ask({0, {6, 1}}, {}).promise, 2 * model.Ask({0, {6, 2}}, {}).promise);
}

TEST(DecisionModelTest, FollowsGuessesThatExplainTheTimesAlone) {
  const std::vector<Sketch> sketches = {Line()};
  std::vector<DecisionModel::Row> right, wrong;
  const auto times = [](int x) { return 1e-3 * (x % 2 == 0 ? 1 : 3); };  // too rough to be interpolated
  for (int x = 0; x < 8; ++x) {
    right.push_back({{0, {x, 0}}, times(x), {times(x)}});
    wrong.push_back({{0, {x, 0}}, 1e-3 * (1 + 0.1 * x), {times(x)}});
  }
  DecisionModel model(sketches);
  model.Fit(right);
  EXPECT_GT(model.Ask({0, {9, 0}}, {1e-4}).promise, 1);
  model.Fit(wrong);
  EXPECT_LT(model.Ask({0, {9, 0}}, {1e-4}).promise, 1);
}

}  // namespace
}  // namespace mycc
