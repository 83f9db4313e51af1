// Whole searches on a made-up space with a known cost surface, which must find its good points.

#include <cmath>

#include "gtest/gtest.h"
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
  std::vector<Candidate> in_flight;
  for (int g = 0; g < trials / config.generation_size; ++g) {
    const std::vector<Candidate> generation = *search->Ask();
    for (const Candidate& candidate : in_flight) EXPECT_TRUE(search->Tell({MeasureSurface(candidate)}).ok());
    in_flight = generation;
  }
  for (const Candidate& candidate : in_flight) EXPECT_TRUE(search->Tell({MeasureSurface(candidate)}).ok());
  return *search->ledger().best()->outcome->seconds;
}

// The best of the whole space.
double Optimum() {
  static const double optimum = [] {
    const std::vector<Sketch> sketches = {ContractionLikeSketch()};
    const Sampler sampler(sketches);
    double best = 1;
    sampler.Enumerate(0, sampler.size(), [&](const Point& point) {
      const double seconds = ContractionLikeSeconds(*sketches[0].instantiate(point.choice));
      if (seconds > 0) best = std::min(best, seconds);
      return true;
    });
    return best;
  }();
  return optimum;
}

struct Comparison {
  double geomean_ratio;  // random's best / evolutionary's best
  int wins;              // of kSeeds
  double to_optimum;     // geometric mean of evolutionary's best / the optimum
};

Comparison Compare(Scorer* scorer) {
  double log_ratio = 0, log_optimum = 0;
  Comparison result{0, 0, 0};
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const double evolutionary = BestAfter("evolutionary", seed, scorer),
                 random = BestAfter("random", seed, nullptr);
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

TEST(SimulationTest, EvolutionaryBeatsRandomWithAnHonestModel) {
  SurfaceScorer scorer(0.7, 0.5);
  const Comparison result = Compare(&scorer);
  EXPECT_GE(result.geomean_ratio, 1.15);
  EXPECT_GE(result.wins, 11);
  EXPECT_LE(result.to_optimum, 1.08);
}

TEST(SimulationTest, EvolutionaryBeatsRandomWithoutAModel) {
  const Comparison result = Compare(nullptr);
  EXPECT_GE(result.geomean_ratio, 1.05);
  EXPECT_GE(result.wins, 9);
}

// Everything backwards: descent around what was measured and the random share must carry the search.
TEST(SimulationTest, EvolutionarySurvivesAMispredictingModel) {
  SurfaceScorer scorer(-1, 0.3);
  const Comparison result = Compare(&scorer);
  EXPECT_GE(result.geomean_ratio, 1.05);
  EXPECT_LE(result.to_optimum, 1.5);
}

TEST(SimulationTest, EightTrialsAreAlreadyGoodWithAnHonestModel) {
  SurfaceScorer scorer(0.7, 0.5);
  double log_optimum = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed)
    log_optimum += std::log(BestAfter("evolutionary", seed, &scorer, 8) / Optimum()) / kSeeds;
  printf("evolutionary / optimum: %.3f\n", std::exp(log_optimum));
  EXPECT_LE(std::exp(log_optimum), 1.5);
}

}  // namespace
}  // namespace mycc
