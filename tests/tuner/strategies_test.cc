// All strategies that search a space, by the same tests: they find good points sooner than drawing at random,
// in spaces with failures, with few legal points, of one point, and to the end of the space; and each is a
// function of what it was told.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/search_farm.h"
#include "tests/tuner/synthetic_space.h"
#include "tuner/cost/forest.h"

namespace mycc {
namespace {

SearchConfig ConfigOf(const std::string& strategy, uint64_t seed, int generation_size) {
  SearchConfig config;
  config.strategy = strategy;
  config.seed = seed;
  config.generation_size = generation_size;
  config.population = 48;
  config.evolution_steps = 2;
  return config;
}

std::unique_ptr<SearchStrategy> MakeNamed(const SearchConfig& config, std::vector<Sketch> sketches,
                                          Scorer* scorer = nullptr, const std::vector<Trace>& history = {}) {
  static Forest forest({.seed = 0, .trees = 32});
  auto strategy = MakeSearchStrategy(config, std::move(sketches), history, scorer, &forest);
  EXPECT_TRUE(strategy.ok()) << strategy.status();
  return *std::move(strategy);
}

// Seconds of a point; infinity where it fails.
using Seconds = std::function<double(const Point&)>;

Outcome OutcomeOf(const Candidate& candidate, const Seconds& seconds_of) {
  Outcome outcome{candidate.generation, candidate.index, std::nullopt, ""};
  const double seconds = seconds_of(candidate.point);
  if (std::isfinite(seconds)) {
    outcome.seconds = seconds;
  } else {
    outcome.failure = "run_error";
  }
  return outcome;
}

// Three tile sizes and a name of 5, with one valley: 4,320 points.
Sketch ValleySketch() {
  const std::vector<int64_t> sizes = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
  return SketchOf(
      "valley", {{"a", sizes}, {"b", sizes}, {"c", {1, 2, 4, 8, 16, 32}}, {"order", {0, 1, 2, 3, 4}, false}});
}
double ValleySeconds(const Point& point) {
  const Choice& c = point.choice;
  const double by_order[] = {1.4, 1.1, 1.0, 1.6, 1.3};
  return 1e-3 * by_order[c[3]] * (1 + 0.04 * std::pow(c[0] - 8, 2)) * (1 + 0.03 * std::pow(c[1] - 3, 2)) *
         (1 + 0.05 * std::pow(c[2] - 4 + 0.2 * (c[0] - 8), 2));
}
constexpr double kValleyOptimum = 1e-3;

// The number of candidates until one of at most `goal` seconds, at most `limit`.
int EvaluationsTo(double goal, SearchStrategy* search, const Seconds& seconds_of, int limit) {
  int evaluations = 0;
  while (evaluations < limit) {
    const int generation = search->ledger().generations();
    const std::vector<Candidate> candidates = *search->Ask(generation, limit);
    if (candidates.empty()) return limit;
    for (const Candidate& candidate : candidates) {
      ++evaluations;
      if (seconds_of(candidate.point) <= goal) return evaluations;
      EXPECT_TRUE(search->Tell({OutcomeOf(candidate, seconds_of)}).ok());
    }
  }
  return limit;
}

// The `quantile` of the evaluations over 12 seeds.
int QuantileTo(double goal, const std::string& strategy, const Sketch& sketch, const Seconds& seconds_of,
               int generation_size, double quantile, int limit) {
  constexpr int kSeeds = 12;
  std::vector<int> evaluations;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto search = MakeNamed(ConfigOf(strategy, seed, generation_size), {sketch});
    evaluations.push_back(EvaluationsTo(goal, search.get(), seconds_of, limit));
  }
  std::ranges::sort(evaluations);
  return evaluations[static_cast<size_t>(quantile * kSeeds) - 1];
}

class StrategiesTest : public ::testing::TestWithParam<std::string> {};
class LearningStrategiesTest : public ::testing::TestWithParam<std::string> {};

// Drawing at random without repetition finds one point of 4,320 after 0.75 * 4,320 with probability 0.75.
TEST_P(LearningStrategiesTest, FindsTheOptimumOfASmoothSpaceMuchSoonerThanRandom) {
  constexpr double kQuantile = 0.75;
  const int of_random = static_cast<int>(kQuantile * 4320);
  for (const int size : {1, 16}) {
    const int found =
        QuantileTo(kValleyOptimum, GetParam(), ValleySketch(), ValleySeconds, size, kQuantile, 1000);
    printf("%s in generations of %d: the optimum after %d at the quantile 0.75; random: %d\n",
           GetParam().c_str(), size, found, of_random);
    EXPECT_LT(found, of_random / 8) << "generations of " << size;
  }
}

// More than half of the space fails, up to the optimum's edge.
TEST_P(LearningStrategiesTest, FindsTheWayAroundFailures) {
  constexpr double kQuantile = 0.75;
  const Seconds seconds_of = [](const Point& point) {
    const Choice& c = point.choice;
    const bool fails = c[0] + c[1] > 12 || c[2] > 4 || c[3] == 1;
    return fails ? std::numeric_limits<double>::infinity() : ValleySeconds(point);
  };
  const int found = QuantileTo(kValleyOptimum, GetParam(), ValleySketch(), seconds_of, 8, kQuantile, 1000);
  printf("%s with failures: the optimum after %d at the quantile 0.75\n", GetParam().c_str(), found);
  EXPECT_LT(found, static_cast<int>(kQuantile * 4320) / 8);
}

// One in 144 points is legal, and no legal point is a change of one decision away from another.
Sketch ThinSketch() {
  Sketch sketch = ValleySketch();
  sketch.space.constraint = [](const Choice& c) {
    return (c[0] + c[1]) % 12 == 11 && (c[0] + c[2] + c[3]) % 12 == 2;
  };
  sketch.default_choice = {0, 11, 2, 0};
  return sketch;
}

TEST_P(StrategiesTest, ProposesOnlyLegalPointsAndAllOfThem) {
  const Sketch sketch = ThinSketch();
  for (const int size : {1, 7, 64}) {
    const auto search = MakeNamed(ConfigOf(GetParam(), 1, size), {sketch});
    std::set<Choice> proposed;
    while (!search->Exhausted()) {
      const auto generation = *search->Ask(search->ledger().generations(), size);
      for (const Candidate& candidate : generation) {
        EXPECT_TRUE(sketch.space.Legal(candidate.point.choice));
        EXPECT_TRUE(proposed.insert(candidate.point.choice).second);
        ASSERT_TRUE(search->Tell({OutcomeOf(candidate, ValleySeconds)}).ok());
      }
    }
    EXPECT_EQ(proposed.size(), 30u) << "generations of " << size;
    EXPECT_TRUE(search->Ask()->empty());
  }
}

TEST_P(StrategiesTest, OnePointIsProposedOnce) {
  Sketch none = SketchOf("none", {});
  Sketch one = SketchOf("one", {{"a", {4}}, {"b", {8}, false}});
  for (const Sketch& sketch : {none, one}) {
    for (const int size : {1, 16}) {
      const auto search = MakeNamed(ConfigOf(GetParam(), 1, size), {sketch});
      const auto first = *search->Ask(0, size);
      ASSERT_EQ(first.size(), 1u) << sketch.name;
      ASSERT_TRUE(search->Tell({{0, 0, 1e-3, ""}}).ok());
      EXPECT_TRUE(search->Ask(1, size)->empty());
      EXPECT_TRUE(search->Exhausted());
    }
  }
}

TEST_P(StrategiesTest, FailuresAloneEndAfterTheWholeSpace) {
  const Sketch sketch = SketchOf("small", {{"a", {1, 2, 4}}, {"b", {1, 2, 4, 8}}, {"c", {0, 1}, false}});
  const auto search = MakeNamed(ConfigOf(GetParam(), 1, 5), {sketch});
  const auto asked = RunFarm(search.get(), 100, 3, 1, [](const Candidate& candidate) {
    return Outcome{candidate.generation, candidate.index, std::nullopt, "run_error"};
  });
  size_t candidates = 0;
  for (const auto& generation : asked) candidates += generation.size();
  EXPECT_EQ(candidates, 24u);
}

TEST_P(StrategiesTest, CandidatesDependOnNeitherWorkersNorArrival) {
  SurfaceScorer scorer(1, 0.5);
  for (const int size : {1, 8, 64}) {
    const auto run = [&](int workers, uint64_t order) {
      return RunFarm(MakeNamed(ConfigOf(GetParam(), 7, size), {ContractionLikeSketch()}, &scorer).get(), 5,
                     workers, order, MeasureSurface);
    };
    const auto alone = run(1, 1);
    ASSERT_EQ(alone.size(), 5u);
    std::set<std::string> traces;
    for (const auto& generation : alone) {
      EXPECT_EQ(generation.size(), static_cast<size_t>(size));
      for (const Candidate& candidate : generation) EXPECT_TRUE(traces.insert(candidate.trace).second);
    }
    for (uint64_t order = 0; order < 2; ++order)
      EXPECT_EQ(run(10, order), alone) << "generations of " << size;
  }
}

// Generations of other sizes and lags, as a campaign asks for them: {visible, limit}.
constexpr std::pair<int, int> kTurns[] = {{0, 4}, {1, 4}, {2, 8}, {2, 16}, {3, 3}, {5, 16}, {6, 1}, {7, 16}};

TEST_P(StrategiesTest, RestoredSearchContinuesBitForBit) {
  const std::vector<Sketch> sketches = {ValleySketch(), ContractionLikeSketch()};
  const Seconds seconds_of = [](const Point& point) {
    if (point.sketch == 0) return ValleySeconds(point);
    return point.choice[1] == 2 ? std::numeric_limits<double>::infinity() : 2e-3 + 1e-4 * point.choice[0];
  };
  const auto make = [&] { return MakeNamed(ConfigOf(GetParam(), 3, 16), sketches); };
  const auto tell = [&](const std::vector<Candidate>& generation, SearchStrategy* search) {
    for (const Candidate& candidate : generation)
      ASSERT_TRUE(search->Tell({OutcomeOf(candidate, seconds_of)}).ok());
  };
  std::vector<std::vector<Candidate>> whole;
  const auto search = make();
  for (const auto& [visible, limit] : kTurns) {
    for (int g = search->ledger().complete(); g < visible; ++g) tell(whole[g], search.get());
    whole.push_back(*search->Ask(visible, limit));
    ASSERT_EQ(whole.back().size(), static_cast<size_t>(limit));
  }
  for (size_t crash = 1; crash < whole.size(); ++crash) {
    const auto again = make();
    for (size_t g = 0; g < crash; ++g) {
      std::vector<Candidate> recorded = whole[g];
      for (Candidate& candidate : recorded) candidate.point = {};
      ASSERT_TRUE(again->Restore(recorded).ok());
    }
    for (size_t g = crash; g < whole.size(); ++g) {
      const auto [visible, limit] = kTurns[g];
      for (int v = again->ledger().complete(); v < visible; ++v) tell(whole[v], again.get());
      EXPECT_EQ(*again->Ask(visible, limit), whole[g]) << "generation " << g << " after a crash at " << crash;
    }
  }
}

// Refuses a third of all points, predicts noise, and lowers some points to the code of others.
class RefusingScorer : public Scorer {
 public:
  std::vector<absl::StatusOr<Prediction>> Score(const std::vector<const Trace*>& traces) override {
    std::vector<absl::StatusOr<Prediction>> predictions;
    for (const Trace* trace : traces) {
      const std::string text = PrintTrace(*trace);
      const double predicted = 1e-3 * std::exp(NoiseOf(text, 5));
      if (NoiseOf(text, 4) < -0.33) {
        predictions.push_back(absl::ResourceExhaustedError("17 accumulators of 16"));
      } else {
        predictions.push_back(Prediction{predicted, predicted, 0, 5});
      }
    }
    return predictions;
  }
  std::vector<absl::StatusOr<std::string>> CodesOf(const std::vector<const Trace*>& traces) override {
    std::vector<absl::StatusOr<std::string>> codes;
    for (const Trace* trace : traces) codes.push_back(CodeOf(*trace));
    return codes;
  }
  static std::string CodeOf(const Trace& trace) {
    const auto& decisions = trace.decisions;
    const bool is_alike = decisions[0].second == 2;  // whatever the last decision is
    return absl::StrCat(trace.sketch, decisions[0].second, " ", decisions[1].second, " ", decisions[2].second,
                        " ", is_alike ? 0 : decisions.back().second);
  }
};

// The log does not hold the findings of earlier generations about points that they did not propose.
TEST_P(StrategiesTest, RestoredSearchContinuesBitForBitWherePointsAreRefused) {
  RefusingScorer scorer;
  const auto make = [&] {
    return MakeNamed(ConfigOf(GetParam(), 3, 16), {ValleySketch(), ContractionLikeSketch()}, &scorer);
  };
  const auto seconds_of = [](const Point& point) {
    return point.sketch == 0 ? ValleySeconds(point) : 2e-3 + 1e-4 * point.choice[0];
  };
  constexpr int kGenerations = 7;
  std::vector<std::vector<Candidate>> whole;
  const auto search = make();
  for (int g = 0; g < kGenerations; ++g) {
    whole.push_back(*search->Ask(g, 16));
    for (const Candidate& candidate : whole.back())
      ASSERT_TRUE(search->Tell({OutcomeOf(candidate, seconds_of)}).ok());
  }
  for (int crash = 1; crash < kGenerations; ++crash) {
    const auto again = make();
    for (int g = 0; g < crash; ++g) {
      ASSERT_TRUE(again->Restore(whole[g]).ok());
      for (const Candidate& candidate : whole[g])
        ASSERT_TRUE(again->Tell({OutcomeOf(candidate, seconds_of)}).ok());
    }
    EXPECT_EQ(*again->Ask(crash, 16), whole[crash]) << "after a crash at " << crash;
  }
}

// Lowers each point to code of its own, but for the second one of a grid, whose code is the first one's.
class TwinScorer : public Scorer {
 public:
  std::vector<absl::StatusOr<Prediction>> Score(const std::vector<const Trace*>& traces) override {
    return std::vector<absl::StatusOr<Prediction>>(traces.size(), Prediction{1e-3, 1e-3, 0, 5});
  }
  std::vector<absl::StatusOr<std::string>> CodesOf(const std::vector<const Trace*>& traces) override {
    std::vector<absl::StatusOr<std::string>> codes;
    for (const Trace* trace : traces) {
      const std::string code = StepsKey(*trace);
      codes.push_back(first.empty() || code == second ? first : code);
    }
    return codes;
  }
  std::string first, second;
};

// By then the code of the first candidate is forgotten, and a point that was refused for it is not.
TEST(GridSearchTest, RestoredAfterThousandsOfCandidatesItGoesOnWhereItWas) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= 100; ++size) sizes.push_back(size);
  const Sketch sketch = SketchOf("large", {{"a", sizes}, {"b", sizes}});
  const SearchConfig config = ConfigOf("grid", 1, 256);
  const std::vector<Candidate> beginning = *MakeNamed(config, {sketch})->Ask();
  TwinScorer scorer;
  scorer.first = StepsKey(*ParseTrace(beginning[0].trace));
  scorer.second = StepsKey(*ParseTrace(beginning[1].trace));
  const auto search = MakeNamed(config, {sketch}, &scorer);
  constexpr int kGenerations = 26;
  std::vector<std::vector<Candidate>> whole;
  for (int g = 0; g < kGenerations; ++g) {
    // Some are as small as the rest of a budget.
    whole.push_back(*search->Ask(g, g % 3 == 2 ? 100 : 256));
    for (const Candidate& candidate : whole.back())
      ASSERT_TRUE(search->Tell({OutcomeOf(candidate, [](const Point&) { return 1e-3; })}).ok());
  }
  EXPECT_EQ(whole[0][0].trace, beginning[0].trace);
  EXPECT_EQ(whole[0][1].trace, beginning[2].trace) << "the second one is refused";
  const auto again = MakeNamed(config, {sketch}, &scorer);
  for (int g = 0; g + 1 < kGenerations; ++g) {
    ASSERT_TRUE(again->Restore(whole[g]).ok());
    for (const Candidate& candidate : whole[g])
      ASSERT_TRUE(again->Tell({OutcomeOf(candidate, [](const Point&) { return 1e-3; })}).ok());
  }
  ASSERT_GT(again->ledger().num_candidates(), 4096 + 256);
  EXPECT_EQ(*again->Ask(kGenerations - 1, 256), whole.back());
}

class PickyScorer : public Scorer {
 public:
  std::vector<absl::StatusOr<Prediction>> Score(const std::vector<const Trace*>& traces) override {
    std::vector<absl::StatusOr<Prediction>> predictions;
    for (const Trace* trace : traces) {
      if (trace->decisions[0].second > 8) {
        predictions.push_back(absl::FailedPreconditionError("17 accumulators of 16"));
      } else {
        predictions.push_back(Prediction{1e-3, 1e-3, 0, 5});
      }
    }
    return predictions;
  }
};

TEST_P(StrategiesTest, WhatTheScorerRefusesIsNotProposed) {
  PickyScorer scorer;
  const auto search = MakeNamed(ConfigOf(GetParam(), 2, 16), {ValleySketch()}, &scorer);
  int refused = 0;
  for (int g = 0; g < 8; ++g) {
    const auto generation = *search->Ask(g, 16);
    EXPECT_EQ(generation.size(), 16u);
    for (const auto& [reason, count] : search->refusals()) refused += count;
    for (const Candidate& candidate : generation) {
      EXPECT_LE(candidate.point.choice[0], 5);
      EXPECT_EQ(candidate.model, 5u);
      ASSERT_TRUE(search->Tell({OutcomeOf(candidate, ValleySeconds)}).ok());
    }
  }
  EXPECT_GT(refused, 0);
}

// All but the baselines.
std::vector<std::string> LearningStrategies() {
  std::vector<std::string> names = StrategyNames();
  std::erase_if(names, [](const std::string& name) { return name == "random" || name == "grid"; });
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, LearningStrategiesTest, ::testing::ValuesIn(LearningStrategies()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(All, StrategiesTest, ::testing::ValuesIn(StrategyNames()),
                         [](const auto& info) { return info.param; });

TEST(MeasuredSearchTest, BeginsWithDefaultsAndHistory) {
  Trace record = *ValleySketch().instantiate({7, 2, 3, 1});
  for (const char* name : {"descent", "annealing", "bayesian", "differential"}) {
    const auto generation = *MakeNamed(ConfigOf(name, 1, 4), {ValleySketch()}, nullptr, {record})->Ask();
    EXPECT_EQ(generation[0].point, (Point{0, ValleySketch().default_choice}));
    EXPECT_EQ(generation[0].origin, Origin::kDefault);
    EXPECT_EQ(generation[1].point, (Point{0, {7, 2, 3, 1}}));
    EXPECT_EQ(generation[1].origin, Origin::kHistory);
    EXPECT_EQ(generation[2].origin, Origin::kRandom);
  }
}

TEST(BayesianSearchTest, NeedsAClassifier) {
  const auto refused = MakeSearchStrategy(ConfigOf("bayesian", 1, 4), {ValleySketch()}, {}, nullptr);
  EXPECT_EQ(refused.status().message(), "search: the strategy bayesian needs a classifier");
}

}  // namespace
}  // namespace mycc
