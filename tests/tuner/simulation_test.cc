// Whole searches on a made-up space with a known cost surface, which must find its good points.

#include <cmath>
#include <map>

#include "gtest/gtest.h"
#include "tests/tuner/learning_scorer.h"
#include "tests/tuner/synthetic_space.h"
#include "tuner/search/sampler.h"

namespace mycc {
namespace {

constexpr int kTrials = 96;
constexpr int kSeeds = 12;

double BestAfter(const std::string& strategy, uint64_t seed, Scorer* scorer, int trials = kTrials) {
  SearchConfig config;
  config.strategy = strategy;
  config.seed = seed;
  config.generation_size = 8;
  config.population = 64;
  auto search = *MakeSearchStrategy(config, {ContractionLikeSketch()}, {}, scorer);
  auto* const learning = dynamic_cast<LearningScorer*>(scorer);
  const auto tell = [&](const std::vector<Candidate>& candidates) {
    for (const Candidate& candidate : candidates) {
      const Outcome outcome = MeasureSurface(candidate);
      EXPECT_TRUE(search->Tell({outcome}).ok());
      if (learning != nullptr) learning->Learn(candidate, outcome);
    }
  };
  std::vector<Candidate> in_flight;
  for (int g = 0; g < trials / config.generation_size; ++g) {
    const std::vector<Candidate> generation = *search->Ask();
    tell(in_flight);
    in_flight = generation;
  }
  tell(in_flight);
  return *search->ledger().best()->outcome->seconds;
}

// The best of the whole space.
double Optimum() {
  static const double optimum = [] {
    const std::vector<Sketch> sketches = {ContractionLikeSketch()};
    const std::vector<Decision>& decisions = sketches[0].space.decisions;
    const Sampler sampler(sketches);
    double best = 1;
    sampler.Enumerate(0, sampler.size(), [&](const Point& point) {
      ContractionLikePoint values = {};
      for (size_t d = 0; d < values.size(); ++d)
        values[d] = static_cast<double>(decisions[d].choices[point.choice[d]]);
      const double smooth = SmoothSeconds(values);
      if (smooth > 0 && smooth * (1 - kSurfaceNoise) < best)
        best = std::min(best, ContractionLikeSeconds(*sketches[0].instantiate(point.choice)));
      return true;
    });
    return best;
  }();
  return optimum;
}

double RandomBest(uint64_t seed) {
  static std::map<uint64_t, double> known;
  const auto [at, is_new] = known.try_emplace(seed, 0);
  if (is_new) at->second = BestAfter("random", seed, nullptr);
  return at->second;
}

struct Comparison {
  double geomean_ratio;  // random's best / evolutionary's best
  int wins;              // of kSeeds
  double to_optimum;     // geometric mean of evolutionary's best / the optimum
};

// `make_scorer` makes a model for one search; null for none.
Comparison Compare(const std::function<std::unique_ptr<Scorer>()>& make_scorer) {
  double log_ratio = 0, log_optimum = 0;
  Comparison result{0, 0, 0};
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const std::unique_ptr<Scorer> scorer = make_scorer();
    const double evolutionary = BestAfter("evolutionary", seed, scorer.get()), random = RandomBest(seed);
    log_ratio += std::log(random / evolutionary) / kSeeds;
    log_optimum += std::log(evolutionary / Optimum()) / kSeeds;
    result.wins += evolutionary < random;
  }
  result.geomean_ratio = std::exp(log_ratio);
  result.to_optimum = std::exp(log_optimum);
  ::testing::Test::RecordProperty("geomean_ratio", std::to_string(result.geomean_ratio));
  printf("random / evolutionary: %.3f, wins %d of %d, evolutionary / optimum: %.3f\n", result.geomean_ratio,
         result.wins, kSeeds, result.to_optimum);
  return result;
}

// The surface itself, flattened, and noise of about half of what is left.
std::unique_ptr<Scorer> WellInformed() { return std::make_unique<SurfaceScorer>(0.7, 0.5); }
std::unique_ptr<Scorer> NoModel() { return nullptr; }

TEST(SimulationTest, EvolutionaryBeatsRandomWithAModelThatKnowsTheSurface) {
  const Comparison result = Compare(WellInformed);
  EXPECT_GE(result.geomean_ratio, 1.15);
  EXPECT_GE(result.wins, 11);
  EXPECT_LE(result.to_optimum, 1.05);
}

TEST(SimulationTest, EvolutionaryBeatsRandomWithAModelOfWhatItHasMeasured) {
  const Comparison result = Compare([] { return std::make_unique<LearningScorer>(); });
  EXPECT_GE(result.geomean_ratio, 1.15);
  EXPECT_GE(result.wins, 11);
  EXPECT_LE(result.to_optimum, 1.13);
}

TEST(SimulationTest, EvolutionaryBeatsRandomWithoutAModel) {
  const Comparison result = Compare(NoModel);
  EXPECT_GE(result.geomean_ratio, 1.4);
  EXPECT_GE(result.wins, 11);
  EXPECT_LE(result.to_optimum, 1.07);
}

// Everything backwards: the model of the decisions must carry the search.
TEST(SimulationTest, EvolutionarySurvivesAMispredictingModel) {
  const Comparison result = Compare([] { return std::make_unique<SurfaceScorer>(-1, 0.3); });
  EXPECT_GE(result.geomean_ratio, 1.25);
  EXPECT_LE(result.to_optimum, 1.25);
}

TEST(SimulationTest, EightTrialsAreAlreadyGoodWithAModelThatKnowsTheSurface) {
  double log_optimum = 0, log_random = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    log_optimum += std::log(BestAfter("evolutionary", seed, WellInformed().get(), 8) / Optimum()) / kSeeds;
    log_random += std::log(BestAfter("random", seed, nullptr, 8) / Optimum()) / kSeeds;
  }
  printf("after 8 trials, evolutionary / optimum: %.3f, random / optimum: %.3f\n", std::exp(log_optimum),
         std::exp(log_random));
  EXPECT_LE(std::exp(log_optimum), 1.5);
  EXPECT_GE(std::exp(log_random), 2) << "any eight points would do";
}

}  // namespace
}  // namespace mycc
