// The scorer and the search on real sketches of real workloads, with made-up measurements at the end.
#include "tuner/cost/schedule_scorer.h"

#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/schedules.h"
#include "tests/tuner/synthetic_space.h"
#include "tuner/search/rng.h"
#include "tuner/search/trust.h"

namespace mycc {
namespace {

Workload Gemm(int m, int n, int k) { return Canonicalize(*ParseWorkload(GemmText(m, n, k), "test")); }

TEST(ScheduleScorerTest, PredictsAndRefuses) {
  const Workload gemm = Gemm(256, 256, 256);
  ScheduleScorer scorer(gemm, Avx2Target(), "gemm", nullptr);
  const Trace good = *ParseTrace("v1\n" + TiledGemmSteps(6, 16, 4, 4, false, true));
  const Trace fat = *ParseTrace("v1\n" + TiledGemmSteps(14, 32, 4, 4, false, true));
  const Trace wrong = *ParseTrace("v1\nsplit(t9.a0, [4])\n");
  const auto predictions = scorer.Score({&good, &fat, &wrong});
  ASSERT_TRUE(predictions[0].ok());
  EXPECT_EQ(predictions[0]->seconds, predictions[0]->analytic_seconds);
  EXPECT_EQ(predictions[1].status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(predictions[2].status().code(), absl::StatusCode::kFailedPrecondition);
}

// A machine that likes deep k panels, which the analytic model does not know of: the search learns it on the
// way.
TEST(ScheduleScorerTest, LearnsFromTheSearchItServes) {
  const Workload gemm = Gemm(384, 512, 512);
  const Target target = Avx2Target();
  Learner learner;
  ScheduleScorer scorer(gemm, target, "gemm", &learner);
  SearchConfig config;
  config.generation_size = 16;
  config.population = 32;
  config.evolution_steps = 1;
  auto search = *MakeSearchStrategy(config, GenerateSketches(gemm, target), {}, &scorer);
  ScheduleScorer analytic(gemm, target, "gemm", nullptr);
  for (int g = 0; g < 6; ++g) {
    const auto asked = search->Ask();
    ASSERT_TRUE(asked.ok()) << asked.status();
    for (const Candidate& candidate : *asked) {
      const Trace trace = *ParseTrace(candidate.trace);
      double seconds = (*analytic.Score({&trace})[0]).analytic_seconds;
      for (const auto& [name, value] : trace.decisions) {
        if (name.find("kc") != std::string::npos) seconds *= 1 + 128.0 / static_cast<double>(value);
      }
      ASSERT_TRUE(search->Tell({{candidate.generation, candidate.index, seconds, ""}}).ok());
    }
    ASSERT_TRUE(learner.Add(scorer.SamplesOf(search->ledger().generation(g))).ok());
  }
  ASSERT_TRUE(learner.Update("gemm").ok());
  EXPECT_EQ(learner.num_samples(), 96);
  EXPECT_GT(learner.metrics().corrected.pairwise_accuracy, learner.metrics().analytic.pairwise_accuracy);
}

// Measurements take twice the analytic time, give or take a little that nobody can know. The correction is in
// use as soon as one generation may be seen, and the search follows it to the end.
TEST(ScheduleScorerTest, AFactorOfTwoIsLearnedFromTheFirstGenerationAndFollowed) {
  const Workload gemm = Gemm(384, 512, 512);
  const Target target = Avx2Target();
  ScheduleScorer analytic(gemm, target, "gemm", nullptr);
  for (const int lag : {0, 1}) {
    Learner learner;
    ScheduleScorer scorer(gemm, target, "gemm", &learner);
    SearchConfig config;
    config.population = 96;
    config.evolution_steps = 2;
    auto search = *MakeSearchStrategy(config, GenerateSketches(gemm, target), {}, &scorer);
    for (int g = 0; g < 7; ++g) {
      SCOPED_TRACE(testing::Message() << "lag " << lag << ", generation " << g);
      if (g > lag) {
        ASSERT_TRUE(learner.Add(scorer.SamplesOf(search->ledger().generation(g - lag - 1))).ok());
      }
      const int visible = std::max(0, g - lag);
      const auto asked = search->Ask(visible, config.generation_size);
      ASSERT_TRUE(asked.ok()) << asked.status();
      learner.Proposed(learner.version());
      EXPECT_TRUE(PredictionsLead(search->ledger().Fastest(visible)));
      for (const Candidate& candidate : *asked) {
        EXPECT_EQ(candidate.model > 0u, g > lag);
        const Trace trace = *ParseTrace(candidate.trace);
        const double expected = 2 * analytic.Score({&trace})[0]->seconds;
        EXPECT_NEAR(*candidate.predicted_seconds / expected, g > lag ? 1 : 0.5, 0.1);
        const double seconds = expected * (1 + 0.03 * NoiseOf(candidate.trace, 1));
        ASSERT_TRUE(search->Tell({{candidate.generation, candidate.index, seconds, ""}}).ok());
      }
    }
  }
}

}  // namespace
}  // namespace mycc
