// A job's search over several tasks: determinism, restoring, exhaustion.
#include "tuner/scheduler/campaign.h"

#include <functional>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/synthetic_space.h"
#include "tuner/scheduler/generation_plan.h"

namespace mycc {
namespace {

std::vector<CampaignTask> Tasks(Scorer* scorer) {
  std::vector<CampaignTask> tasks;
  const double weights[] = {1, 3, 1};
  for (int i = 0; i < 3; ++i) {
    SearchConfig config;
    config.seed = static_cast<uint64_t>(i);
    config.generation_size = 4;
    config.population = 24;
    config.evolution_steps = 1;
    // The last task has four points alone.
    Sketch sketch = i < 2 ? ContractionLikeSketch() : SketchOf("copy", {{"vector", {1, 2, 4, 8}}});
    tasks.push_back({{weights[i], 1e9, "family"}, [config, sketch, scorer = i < 2 ? scorer : nullptr] {
                       return MakeSearchStrategy(config, {sketch}, {}, scorer);
                     }});
  }
  return tasks;
}

Outcome Measure(int task, const Candidate& candidate) {
  if (task < 2) return MeasureSurface(candidate);
  return {candidate.generation, candidate.index, 1e-4 * (1 + candidate.index), ""};
}

SchedulerConfig Config() {
  SchedulerConfig config;
  config.max_trials = 62;  // cuts the last generation
  return config;
}

struct Journal {
  std::vector<Proposal> proposals;
  std::vector<std::string> learned;
};

// Outcomes arrive in an order drawn from `seed`, as many as needed for the next proposal and sometimes more.
// Proposal i is made with window `windows(i)`.
Journal RunCampaign(
    uint64_t seed, const std::vector<Proposal>& restored = {},
    const std::function<int64_t(size_t)>& windows = [](size_t) { return 1; }) {
  SurfaceScorer scorer(1, 0.3);
  Journal run;
  Campaign campaign(
      Config(), Tasks(&scorer), [&](int task, const std::vector<SearchLedger::Entry>& generation) {
        for (const SearchLedger::Entry& entry : generation) {
          run.learned.push_back(
              absl::StrCat(task, " ", entry.candidate.trace, " ", entry.outcome->seconds.value_or(-1)));
        }
        return absl::OkStatus();
      });
  Rng rng(seed);
  std::vector<std::pair<int, Candidate>> in_flight;
  const auto start = [&](const Proposal& proposal) {
    run.proposals.push_back(proposal);
    for (const Candidate& candidate : proposal.candidates) in_flight.emplace_back(proposal.task, candidate);
  };
  for (const Proposal& proposal : restored) {
    EXPECT_TRUE(campaign.Restore(proposal, 0, windows(run.proposals.size())).ok());
    start(proposal);
  }
  while (true) {
    const int64_t window = windows(run.proposals.size());
    while (!campaign.Ready(window) || (!in_flight.empty() && rng.Chance(0.5))) {
      const int i = rng.Below(static_cast<int>(in_flight.size()));
      EXPECT_TRUE(campaign.Tell(in_flight[i].first, {Measure(in_flight[i].first, in_flight[i].second)}).ok());
      in_flight.erase(in_flight.begin() + i);
    }
    const auto proposal = campaign.Next(0, window);
    EXPECT_TRUE(proposal.ok()) << proposal.status();
    if (!proposal.ok() || !*proposal) break;
    start(**proposal);
  }
  EXPECT_EQ(campaign.stop_reason(), StopReason::kTrials);
  return run;
}

TEST(CampaignTest, RoundsDoNotDependOnArrivalOrder) {
  const Journal one = RunCampaign(1);
  int trials = 0;
  std::set<int> tasks;
  for (const Proposal& proposal : one.proposals) {
    trials += static_cast<int>(proposal.candidates.size());
    tasks.insert(proposal.task);
  }
  EXPECT_EQ(trials, 62);
  EXPECT_EQ(tasks.size(), 3u);
  for (uint64_t seed = 2; seed < 6; ++seed) {
    const Journal other = RunCampaign(seed);
    EXPECT_EQ(one.proposals, other.proposals);
    EXPECT_EQ(one.learned, other.learned);
  }
}

TEST(CampaignTest, RestoredRoundsContinueBitForBit) {
  const Journal whole = RunCampaign(1);
  for (size_t crash = 1; crash < whole.proposals.size(); crash += 3) {
    const Journal resumed = RunCampaign(crash, {whole.proposals.begin(), whole.proposals.begin() + crash});
    EXPECT_EQ(whole.proposals, resumed.proposals) << "after a crash at proposal " << crash;
    EXPECT_EQ(whole.learned, resumed.learned);
  }
}

// The farm grows and shrinks meanwhile.
TEST(CampaignTest, WindowsAreAllThatWorkersAddToTheSeedAndTheResults) {
  const auto windows = [](size_t proposal) { return proposal < 4 ? 1 : proposal < 9 ? 24 : 9; };
  const Journal one = RunCampaign(1, {}, windows);
  EXPECT_NE(one.proposals, RunCampaign(1).proposals);
  for (uint64_t seed = 2; seed < 6; ++seed) {
    const Journal other = RunCampaign(seed, {}, windows);
    EXPECT_EQ(one.proposals, other.proposals);
    EXPECT_EQ(one.learned, other.learned);
  }
  for (size_t crash = 1; crash < one.proposals.size(); crash += 3) {
    const Journal resumed =
        RunCampaign(crash, {one.proposals.begin(), one.proposals.begin() + crash}, windows);
    EXPECT_EQ(one.proposals, resumed.proposals) << "after a crash at proposal " << crash;
    EXPECT_EQ(one.learned, resumed.learned);
  }
}

TEST(CampaignTest, AWindowLeavesRoundsUnseen) {
  SurfaceScorer scorer(1, 0.3);
  Campaign campaign(Config(), Tasks(&scorer));
  for (int proposal = 0; proposal < 5; ++proposal) {
    EXPECT_TRUE(campaign.Ready(16)) << proposal;
    ASSERT_TRUE(campaign.Next(0, 16).ok());
  }
  EXPECT_FALSE(campaign.Ready(16)) << "four generations of four are the window";
  EXPECT_TRUE(campaign.Ready(20));
}

TEST(CampaignTest, NextRefusesUntilEarlierRoundsAreTold) {
  SurfaceScorer scorer(1, 0.3);
  Campaign campaign(Config(), Tasks(&scorer));
  ASSERT_TRUE(campaign.Next(0).ok());
  ASSERT_TRUE(campaign.Next(0).ok());
  EXPECT_FALSE(campaign.Ready());
  EXPECT_EQ(campaign.Next(0).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(campaign.Tell(3, {}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(CampaignTest, ExhaustedTasksEndTheCampaign) {
  SearchConfig search;
  search.generation_size = 3;
  std::vector<CampaignTask> tasks;
  tasks.push_back(
      {{}, [search] {
         return MakeSearchStrategy(search, {SketchOf("copy", {{"vector", {1, 2, 4, 8}}})}, {}, nullptr);
       }});
  Campaign campaign({}, std::move(tasks));
  int trials = 0;
  while (true) {
    const auto proposal = *campaign.Next(0);
    if (!proposal) break;
    for (const Candidate& candidate : proposal->candidates) {
      ++trials;
      ASSERT_TRUE(campaign.Tell(0, {Measure(2, candidate)}).ok());
    }
  }
  EXPECT_EQ(trials, 4);
  EXPECT_EQ(campaign.stop_reason(), StopReason::kExhausted);
  EXPECT_EQ(campaign.progress()[0].best_seconds.back(), 1e-4);
}

// Ten seconds for each generation; a time that never changes promises nothing. A restored campaign knows when
// its proposals were made.
TEST(CampaignTest, ALittleExpectedGainEndsTheCampaign) {
  SchedulerConfig config;
  config.min_gain = 0.01;
  std::vector<Proposal> proposals;
  const auto run = [&](const std::vector<Proposal>& restored) {
    SurfaceScorer scorer(1, 0.3);
    Campaign campaign(config, Tasks(&scorer));
    double now = 0;
    proposals = restored;
    for (const Proposal& proposal : restored) {
      EXPECT_TRUE(campaign.Restore(proposal, now).ok());
      now += 10;
    }
    size_t told = 0;
    while (true) {
      for (; told < proposals.size(); ++told) {
        for (const Candidate& candidate : proposals[told].candidates)
          EXPECT_TRUE(
              campaign.Tell(proposals[told].task, {{candidate.generation, candidate.index, 1e-3, ""}}).ok());
      }
      const auto next = *campaign.Next(now);
      if (!next) break;
      proposals.push_back(*next);
      now += 10;
    }
    EXPECT_EQ(campaign.stop_reason(), StopReason::kGain);
    return now;
  };
  EXPECT_EQ(run({}), 70) << "a minute, and two generations of each";
  const std::vector<Proposal> whole = proposals;
  EXPECT_EQ(run({whole.begin(), whole.begin() + 3}), 70);
  EXPECT_EQ(proposals, whole);
}

TEST(CampaignTest, AShortFirstLookLeavesTheRestOfASmallSpace) {
  SearchConfig search;
  search.generation_size = 4;
  std::vector<CampaignTask> tasks;
  for (const double rough_cost : {1.0, 1000.0}) {
    tasks.push_back(
        {{.rough_cost = rough_cost}, [search] {
           return MakeSearchStrategy(search, {SketchOf("copy", {{"vector", {1, 2, 4, 8}}})}, {}, nullptr);
         }});
  }
  SchedulerConfig config;
  config.first_trials = 1;
  config.generation_size = 4;
  Campaign campaign(config, std::move(tasks));
  std::vector<std::pair<int, size_t>> given;  // trials, with their task
  while (true) {
    const auto next = *campaign.Next(0);
    if (!next) break;
    given.emplace_back(next->task, next->candidates.size());
    for (const Candidate& candidate : next->candidates)
      ASSERT_TRUE(campaign.Tell(next->task, {Measure(2, candidate)}).ok());
  }
  using Given = std::pair<int, size_t>;
  EXPECT_THAT(given, ::testing::ElementsAre(Given(1, 4), Given(0, 1), Given(0, 3)));
  EXPECT_EQ(campaign.stop_reason(), StopReason::kExhausted);
}

TEST(CampaignTest, ASearchBeginsWithItsFirstRound) {
  SurfaceScorer scorer(1, 0.3);
  std::vector<CampaignTask> tasks = Tasks(&scorer);
  std::vector<int> begun;
  for (int task = 0; task < 3; ++task) {
    tasks[task].begin = [&begun, task, begin = tasks[task].begin] {
      begun.push_back(task);
      return begin();
    };
  }
  Campaign campaign(Config(), std::move(tasks));
  EXPECT_TRUE(begun.empty());
  EXPECT_EQ(campaign.num_generations_of(0), 0);
  ASSERT_EQ((*campaign.Next(0))->task, 0);
  EXPECT_EQ(begun, std::vector<int>({0}));
  ASSERT_EQ((*campaign.Next(0))->task, 1);
  EXPECT_EQ(begun, std::vector<int>({0, 1}));
}

TEST(CampaignTest, ASearchThatCannotBeginIsAnErrorOfItsFirstRound) {
  std::vector<CampaignTask> tasks;
  tasks.push_back({{}, [] { return MakeSearchStrategy({}, {}, {}, nullptr); }});
  Campaign campaign({}, std::move(tasks));
  EXPECT_EQ(campaign.Next(0).status().code(), absl::StatusCode::kInvalidArgument);
}

// Sizes of the generations of a campaign with such a budget, in order, and the window that it asks for.
std::vector<std::pair<int, size_t>> Generations(SchedulerConfig config, int num_tasks) {
  SurfaceScorer scorer(1, 0.3);
  std::vector<CampaignTask> tasks;
  for (int t = 0; t < num_tasks; ++t) {
    SearchConfig search;
    search.population = 24;
    search.evolution_steps = 1;
    tasks.push_back({{}, [search, &scorer] {
                       return MakeSearchStrategy(search, {ContractionLikeSketch()}, {}, &scorer);
                     }});
  }
  config.generation_size = 16;
  config.adapts_to_budget = true;
  Campaign campaign(config, std::move(tasks));
  const int64_t window = LeastWindow(config, num_tasks);
  std::vector<std::pair<int, size_t>> sizes;
  std::vector<Proposal> in_flight;
  while (true) {
    for (size_t told = 0; !campaign.Ready(window); ++told) {
      for (const Candidate& candidate : in_flight[told].candidates)
        EXPECT_TRUE(campaign.Tell(in_flight[told].task, {MeasureSurface(candidate)}).ok());
    }
    const auto next = *campaign.Next(0, window);
    if (!next) return sizes;
    sizes.emplace_back(next->task, next->candidates.size());
    in_flight.push_back(*next);
  }
}

TEST(CampaignTest, ASmallBudgetIsSpentInSmallGenerations) {
  const auto sizes = [](int64_t trials) {
    std::vector<size_t> sizes;
    for (const auto& [task, size] : Generations({.max_trials = trials}, 1)) sizes.push_back(size);
    return sizes;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(sizes(3), ElementsAre(3));
  EXPECT_THAT(sizes(16), ElementsAre(4, 4, 8));
  EXPECT_THAT(sizes(20), ElementsAre(4, 4, 8, 4));
  EXPECT_THAT(sizes(64), ElementsAre(4, 4, 8, 16, 16, 16));
  EXPECT_THAT(sizes(80), ElementsAre(16, 16, 16, 16, 16));
}

TEST(CampaignTest, ABudgetOfTimeCountsAsTheTrialsThatADeviceMeasuresInIt) {
  const auto first = [](double seconds, int tasks) {
    return Generations({.max_trials = 200, .max_seconds = seconds}, tasks)[0].second;
  };
  EXPECT_EQ(first(10, 1), 4u);
  EXPECT_EQ(first(30, 1), 16u);
  EXPECT_EQ(first(30, 2), 4u);
  EXPECT_EQ(first(0, 1), 16u);
}

TEST(CampaignTest, WhereBuildsAreSlowASmallBudgetBeginsWithTen) {
  const auto sizes = [](int64_t trials) {
    std::vector<size_t> sizes;
    SchedulerConfig config{.max_trials = trials};
    config.least_generation = kLeastGenerationOfSlowBuilds;
    for (const auto& [task, size] : Generations(config, 1)) sizes.push_back(size);
    return sizes;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(sizes(3), ElementsAre(3));
  EXPECT_THAT(sizes(16), ElementsAre(10, 6));
  EXPECT_THAT(sizes(20), ElementsAre(10, 10));
  EXPECT_THAT(sizes(64), ElementsAre(10, 10, 16, 16, 12));
  EXPECT_THAT(sizes(80), ElementsAre(16, 16, 16, 16, 16));
}

TEST(CampaignTest, AJobOfSeveralTasksTurnsToAnotherWhileOneIsUnseen) {
  const auto generations = Generations({.max_trials = 64}, 4);
  int64_t trials = 0;
  for (size_t i = 0; i < generations.size(); ++i) {
    trials += static_cast<int64_t>(generations[i].second);
    if (i > 0) {
      EXPECT_NE(generations[i].first, generations[i - 1].first) << i;
    }
  }
  EXPECT_EQ(trials, 64);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(generations[i].second, 4u);
}

}  // namespace
}  // namespace mycc
