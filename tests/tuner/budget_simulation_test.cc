// How a budget is divided into generations, and how much is in flight: whole campaigns on a made-up space
// with a known cost surface.
#include <cmath>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/tuner/learning_scorer.h"
#include "tests/tuner/synthetic_space.h"
#include "tuner/scheduler/campaign.h"
#include "tuner/scheduler/generation_plan.h"

namespace mycc {
namespace {

struct Scheme {
  int64_t trials = 0;  // of each task
  int tasks = 1;
  int generation_size = 16;
  bool adapts = false;
  int64_t window = 0;
  int64_t least = kLeastGeneration;  // of a small budget's generations
  int population = 64;
};

using MakeScorer = std::function<std::unique_ptr<Scorer>()>;
// The surface itself, flattened, and noise of about half of what is left.
std::unique_ptr<Scorer> HalfInformed() { return std::make_unique<SurfaceScorer>(0.7, 0.5); }
// A vague idea of the surface.
std::unique_ptr<Scorer> Vague() { return std::make_unique<SurfaceScorer>(0.4, 0.8); }
std::unique_ptr<Scorer> Learning() { return std::make_unique<LearningScorer>(); }
std::unique_ptr<Scorer> NoModel() { return nullptr; }

// The geometric mean over the tasks of their best seconds, after all trials. As many trials as the window
// lets be in flight are.
double BestOf(const Scheme& scheme, const MakeScorer& make_scorer, uint64_t seed) {
  std::vector<std::unique_ptr<Scorer>> scorers;
  std::vector<CampaignTask> tasks;
  for (int t = 0; t < scheme.tasks; ++t) {
    scorers.push_back(make_scorer());
    SearchConfig config;
    config.seed = seed * 1000 + static_cast<uint64_t>(t);
    config.generation_size = scheme.generation_size;
    config.population = scheme.population;
    config.evolution_steps = 2;
    tasks.push_back({{}, [config, scorer = scorers.back().get()] {
                       return MakeSearchStrategy(config, {ContractionLikeSketch()}, {}, scorer);
                     }});
  }
  SchedulerConfig config;
  config.max_trials = scheme.trials * scheme.tasks;
  config.max_trials_per_task = scheme.trials;
  config.generation_size = scheme.generation_size;
  config.adapts_to_budget = scheme.adapts;
  config.least_generation = scheme.least;
  Campaign campaign(config, std::move(tasks),
                    [&](int task, const std::vector<SearchLedger::Entry>& generation) {
                      auto* const learning = dynamic_cast<LearningScorer*>(scorers[task].get());
                      for (const SearchLedger::Entry& entry : generation)
                        if (learning != nullptr) learning->Learn(entry.candidate, *entry.outcome);
                      return absl::OkStatus();
                    });
  const int64_t window = scheme.window > 0 ? scheme.window : LeastWindow(config, scheme.tasks);
  std::deque<Proposal> in_flight;
  while (true) {
    while (!campaign.Ready(window)) {
      for (const Candidate& candidate : in_flight.front().candidates)
        EXPECT_TRUE(campaign.Tell(in_flight.front().task, {MeasureSurface(candidate)}).ok());
      in_flight.pop_front();
    }
    auto proposal = *campaign.Next(0, window);
    if (!proposal) break;
    in_flight.push_back(*std::move(proposal));
  }
  for (const Proposal& proposal : in_flight) {
    for (const Candidate& candidate : proposal.candidates)
      EXPECT_TRUE(campaign.Tell(proposal.task, {MeasureSurface(candidate)}).ok());
  }
  double log_best = 0;
  for (const TaskProgress& task : campaign.progress()) log_best += std::log(*task.best_seconds.back());
  return std::exp(log_best / scheme.tasks);
}

// The geometric mean over seeds of the second scheme's best seconds over the first one's: above 1, the first
// is better.
double Gain(const char* what, const Scheme& scheme, const Scheme& other, const MakeScorer& make_scorer,
            int seeds) {
  double log_gain = 0, log_best = 0;
  int wins = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    const double a = BestOf(scheme, make_scorer, static_cast<uint64_t>(seed));
    const double b = BestOf(other, make_scorer, static_cast<uint64_t>(seed));
    log_gain += std::log(b / a) / seeds;
    log_best += std::log(a) / seeds;
    wins += a < b;
  }
  printf("%s: gains %.3f over %d seeds, better in %d (best %.3f ms)\n", what, std::exp(log_gain), seeds, wins,
         1e3 * std::exp(log_best));
  return std::exp(log_gain);
}

constexpr int kSeeds = 24;

TEST(BudgetSimulationTest, SixteenTrialsGainAsFourFourAndEight) {
  const Scheme adapted{.trials = 16, .adapts = true}, at_once{.trials = 16};
  EXPECT_GE(Gain("16 trials, half informed", adapted, at_once, HalfInformed, kSeeds), 1.0);
  EXPECT_GE(Gain("16 trials, vague", adapted, at_once, Vague, kSeeds), 1.0);
  EXPECT_GE(Gain("16 trials, learning", adapted, at_once, Learning, kSeeds), 1.0);
  EXPECT_GE(Gain("16 trials, no model", adapted, at_once, NoModel, kSeeds), 1.0);
}

TEST(BudgetSimulationTest, ThirtyTwoToo) {
  const Scheme adapted{.trials = 32, .adapts = true}, at_once{.trials = 32};
  EXPECT_GE(Gain("32 trials, half informed", adapted, at_once, HalfInformed, kSeeds), 1.0);
  EXPECT_GE(Gain("32 trials, vague", adapted, at_once, Vague, kSeeds), 1.0);
  EXPECT_GE(Gain("32 trials, learning", adapted, at_once, Learning, kSeeds), 1.0);
  EXPECT_GE(Gain("32 trials, no model", adapted, at_once, NoModel, kSeeds), 1.0);
}

TEST(BudgetSimulationTest, SixtyFourToo) {
  const Scheme adapted{.trials = 64, .adapts = true}, at_once{.trials = 64};
  EXPECT_GE(Gain("64 trials, half informed", adapted, at_once, HalfInformed, kSeeds), 1.0);
  EXPECT_GE(Gain("64 trials, vague", adapted, at_once, Vague, kSeeds), 1.0);
  EXPECT_GE(Gain("64 trials, learning", adapted, at_once, Learning, kSeeds), 1.0);
  EXPECT_GE(Gain("64 trials, no model", adapted, at_once, NoModel, kSeeds), 1.0);
}

// A GPU's generation takes the time of its slowest build, whether it holds four candidates or ten. In two
// thirds of the time of 4 + 4 + 8 there is room for 10 + 10, which is as good. 10 + 6 loses little: most
// where the model knows only what was measured.
TEST(BudgetSimulationTest, WhereBuildsAreSlowTenComeFirst) {
  using Model = std::pair<const char*, MakeScorer>;
  const Scheme four{.trials = 16, .adapts = true};
  Scheme ten = four;
  ten.least = kLeastGenerationOfSlowBuilds;
  Scheme twice = ten;
  twice.trials = 20;
  for (const auto& [model, make_scorer] :
       {Model("half informed", HalfInformed), Model("vague", Vague), Model("learning", Learning)}) {
    const std::string in_time = absl::StrCat("10 + 10 for 4 + 4 + 8, ", model);
    const std::string in_trials = absl::StrCat("10 + 6 for 4 + 4 + 8, ", model);
    EXPECT_GE(Gain(in_time.c_str(), twice, four, make_scorer, kSeeds), 0.98);
    EXPECT_GE(Gain(in_trials.c_str(), ten, four, make_scorer, kSeeds), 0.9);
  }
}

// Hundreds of devices have thousands of trials in flight. The loss is one of turns: the first 4096 of these
// 6144 trials are proposed before anything is seen.
TEST(BudgetSimulationTest, AWindowOfThousandsLosesLittle) {
  const Scheme narrow{.trials = 1536, .tasks = 4, .population = 32};
  Scheme wide = narrow;
  wide.window = 4096;
  EXPECT_GE(Gain("4 tasks of 1536 trials, a window of 4096, half informed", wide, narrow, HalfInformed, 1),
            0.98);
}

}  // namespace
}  // namespace mycc
