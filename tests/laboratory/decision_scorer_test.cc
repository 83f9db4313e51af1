// Learning from decisions alone: order, failures, a prior from other devices, determinism.
#include "laboratory/decision_scorer.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "laboratory/replay.h"
#include "laboratory/warm_start.h"
#include "tests/laboratory/made_space.h"
#include "tuner/search/pair_order.h"

namespace mycc {
namespace {

SpaceReplay ReplayOf(const RecordedSpace& space) {
  auto replay = SpaceReplay::Make(space);
  EXPECT_TRUE(replay.ok()) << replay.status();
  return *std::move(replay);
}

// Every `stride`th configuration, as generations of a search that measured it.
std::vector<SearchLedger::Entry> Measured(const SpaceReplay& replay, int stride) {
  std::vector<SearchLedger::Entry> entries;
  for (int i = 0; i < static_cast<int>(replay.space().configurations.size()); i += stride) {
    SearchLedger::Entry& entry = entries.emplace_back();
    entry.candidate.point = {0, replay.space().configurations[static_cast<size_t>(i)].choices};
    entry.outcome = Outcome{0, static_cast<uint32_t>(i), replay.Seconds(i), ""};
    if (!entry.outcome->seconds) entry.outcome->failure = "compile";
  }
  return entries;
}

std::vector<Prediction> PredictAll(const SpaceReplay& replay, LearningScorer* scorer) {
  std::vector<Trace> traces;
  for (const RecordedConfiguration& configuration : replay.space().configurations)
    traces.push_back(*replay.sketch().instantiate(configuration.choices));
  std::vector<const Trace*> asked;
  for (const Trace& trace : traces) asked.push_back(&trace);
  std::vector<Prediction> predictions;
  for (const auto& prediction : scorer->Score(asked)) {
    EXPECT_TRUE(prediction.ok()) << prediction.status();
    predictions.push_back(prediction.value_or(Prediction()));
  }
  return predictions;
}

// The share of all pairs of configurations that predictions put in the right order.
double PairAccuracy(const SpaceReplay& replay, const std::vector<Prediction>& predictions) {
  std::vector<std::pair<double, double>> rows;
  for (size_t i = 0; i < predictions.size(); ++i) {
    const auto seconds = replay.Seconds(static_cast<int>(i));
    if (seconds) rows.emplace_back(predictions[i].seconds, *seconds);
  }
  const PairOrder order = CountPairs(rows);
  return order.right / order.pairs;
}

TEST(DecisionScorerTest, KnowsNothingAtFirstAndLearns) {
  const SpaceReplay replay = ReplayOf(MadeSpace());
  const auto scorers = DecisionScorers::Make(replay.sketch(), {});
  ASSERT_TRUE(scorers.ok()) << scorers.status();
  const auto scorer = (*scorers)->Make(1);
  std::vector<Prediction> predictions = PredictAll(replay, scorer.get());
  EXPECT_EQ(PairAccuracy(replay, predictions), 0.5);
  EXPECT_EQ(predictions[0].model, 0u);
  ASSERT_TRUE(scorer->Learn(Measured(replay, 5)).ok());
  predictions = PredictAll(replay, scorer.get());
  EXPECT_GT(PairAccuracy(replay, predictions), 0.8);
  EXPECT_EQ(predictions[0].model, 54u);
}

TEST(DecisionScorerTest, LearnsWhatFails) {
  const SpaceReplay replay = ReplayOf(MadeSpace());
  const auto scorers = DecisionScorers::Make(replay.sketch(), {});
  ASSERT_TRUE(scorers.ok()) << scorers.status();
  const auto scorer = (*scorers)->Make(1);
  ASSERT_TRUE(scorer->Learn(Measured(replay, 2)).ok());
  const std::vector<Prediction> predictions = PredictAll(replay, scorer.get());
  double failing = 1, working = 0;
  for (size_t i = 1; i < predictions.size(); i += 2) {  // those that were not measured
    double& end = replay.Seconds(static_cast<int>(i)) ? working : failing;
    const double p = predictions[i].failure_probability;
    end = replay.Seconds(static_cast<int>(i)) ? std::max(end, p) : std::min(end, p);
  }
  EXPECT_GT(failing, 0.5);
  EXPECT_LT(working, 0.5);
}

TEST(DecisionScorerTest, OtherDevicesGiveAPriorThatOwnSamplesCorrect) {
  const SpaceReplay replay = ReplayOf(MadeSpace("here", 1, 5));
  const RecordedSpace other = MadeSpace("there", 10, 3);
  const auto warm = WarmStartFrom(replay, {&other});
  ASSERT_TRUE(warm.ok()) << warm.status();
  const auto scorers = DecisionScorers::Make(replay.sketch(), warm->prior);
  ASSERT_TRUE(scorers.ok()) << scorers.status();
  const auto scorer = (*scorers)->Make(1);
  const double before = PairAccuracy(replay, PredictAll(replay, scorer.get()));
  EXPECT_GT(before, 0.6);
  EXPECT_LT(before, 0.9);  // the devices differ
  ASSERT_TRUE(scorer->Learn(Measured(replay, 5)).ok());
  EXPECT_GT(PairAccuracy(replay, PredictAll(replay, scorer.get())), before + 0.05);
}

TEST(DecisionScorerTest, TheSameSamplesGiveTheSamePredictions) {
  const SpaceReplay replay = ReplayOf(MadeSpace());
  const auto scorers = DecisionScorers::Make(replay.sketch(), {});
  ASSERT_TRUE(scorers.ok()) << scorers.status();
  std::vector<std::vector<Prediction>> predictions;
  for (const uint64_t seed : {7, 7, 8}) {
    const auto scorer = (*scorers)->Make(seed);
    ASSERT_TRUE(scorer->Learn(Measured(replay, 4)).ok());
    predictions.push_back(PredictAll(replay, scorer.get()));
  }
  bool differs = false;
  for (size_t i = 0; i < predictions[0].size(); ++i) {
    EXPECT_EQ(predictions[0][i].seconds, predictions[1][i].seconds);
    differs |= predictions[0][i].seconds != predictions[2][i].seconds;
  }
  EXPECT_TRUE(differs);
}

TEST(DecisionScorerTest, RefusesATraceOfAnotherSpace) {
  const SpaceReplay replay = ReplayOf(MadeSpace());
  const auto scorers = DecisionScorers::Make(replay.sketch(), {});
  ASSERT_TRUE(scorers.ok()) << scorers.status();
  Trace trace;
  trace.sketch = "contraction";
  EXPECT_FALSE((*scorers)->Make(0)->Score({&trace})[0].ok());
}

TEST(DecisionScorerTest, FeaturesArePlacesAndNames) {
  Space space;
  space.decisions = {
      {"tile", {1, 2, 4, 8}}, {"layout", {0, 1, 2}, false}, {"one", {7}}, {"switch", {0, 1}, false}};
  EXPECT_EQ(DecisionFeatures(space, {3, 1, 0, 1}), (Features{3, 0, 1, 0, 1}));
  space.decisions = {{"one", {7}}};
  EXPECT_EQ(DecisionFeatures(space, {0}), Features{0});
}

}  // namespace
}  // namespace mycc
