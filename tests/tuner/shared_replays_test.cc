// Replays that share the steps with which traces begin, and the threads that candidates and boosters are
// divided over.
#include "tuner/cost/shared_replays.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "base/thread_team.h"
#include "gtest/gtest.h"
#include "tests/tuner/samples.h"
#include "tests/tuner/schedules.h"
#include "tuner/cost/appraisals.h"
#include "tuner/cost/schedule_scorer.h"
#include "tuner/cost/xgboost_model.h"
#include "tuner/search/sampler.h"
#include "tuner/search/strategy.h"

namespace mycc {
namespace {

constexpr char kConv[] =
    R"(workload conv(x: f32[1,14,14,32], w: const f32[32,32,3,3]) -> (y: f32[1,14,14,32]) {
  p[n,i,j,c]: f32[1,16,16,32] = select(1 <= i && i < 15 && 1 <= j && j < 15, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[1,14,14,32] = sum[c:32, r:3, s:3](p[n,i+r,j+s,c] * w[k,c,r,s])
  y[n,i,j,k] = max(a[n,i,j,k], 0.0)
})";
constexpr char kHalfGemm[] = R"(workload gemm(a: f16[256,256], b: const f16[256,256]) -> (c: f16[256,256]) {
  p[i,j]: f32[256,256] = sum[k:256](f32(a[i,k]) * f32(b[k,j]))
  c[i,j] = f16(p[i,j])
})";

struct Task {
  std::string name;
  Workload workload;
  Target target;
};

std::vector<Task> Tasks() {
  const auto parsed = [](const std::string& text) { return Canonicalize(*ParseWorkload(text, "test")); };
  return {{"gemm", parsed(GemmText(96, 128, 64)), Avx2Target(2)},
          {"conv", parsed(kConv), Avx512Target()},
          {"gpu", parsed(kHalfGemm), *ParseTarget("h100")}};
}

// Points of the task's sketches and their neighbours, as a search has them, with steps that are not legal
// behind some.
std::vector<Trace> DrawnTraces(const Task& task, int points, uint64_t seed) {
  const std::vector<Sketch> sketches = GenerateSketches(task.workload, task.target);
  const Sampler sampler(sketches);
  Rng rng(seed);
  std::vector<Trace> traces;
  Point point = sampler.Random(&rng);
  for (int i = 0; i < points; ++i) {
    point = i % 8 == 0 ? sampler.Random(&rng) : sampler.Mutate(point, &rng);
    absl::StatusOr<Trace> trace = sketches[point.sketch].instantiate(point.choice);
    if (!trace.ok()) continue;
    if (i % 5 == 0) trace->steps.push_back({"split", {StepArg{"no.loop"}, StepArg{StepArg::Ints{2}}}});
    traces.push_back(*std::move(trace));
  }
  return traces;
}

// The text of the function that each trace replays to, or why it does not replay.
std::vector<std::string> Texts(SharedReplays* replays, const Task& task, const std::vector<Trace>& traces,
                               ParallelFor* parallel) {
  std::vector<std::string> keys, texts(traces.size());
  for (const Trace& trace : traces) keys.push_back(StepsKey(trace));
  std::vector<SharedReplays::Asked> asked;
  for (size_t i = 0; i < traces.size(); ++i) asked.push_back({&traces[i], keys[i]});
  replays->Replay(task.name, task.workload, task.target, asked, parallel,
                  [&](size_t i, const absl::StatusOr<Function>& function) {
                    texts[i] = function.ok() ? PrintFunction(*function) : function.status().ToString();
                  });
  return texts;
}

TEST(SharedReplaysTest, AreReplaysWhateverWasReplayedBefore) {
  ThreadTeam team(3);
  ParallelFor in_turn;
  SharedReplays shared(24), threaded;
  for (uint64_t round = 0; round < 3; ++round) {
    for (const Task& task : Tasks()) {
      SCOPED_TRACE(task.name);
      const std::vector<Trace> traces = DrawnTraces(task, 40, round);
      std::vector<std::string> expected;
      for (const Trace& trace : traces) {
        const absl::StatusOr<Schedule> schedule = Replay(task.workload, task.target, trace);
        expected.push_back(schedule.ok() ? PrintFunction(schedule->function())
                                         : schedule.status().ToString());
      }
      EXPECT_EQ(Texts(&shared, task, traces, &in_turn), expected);
      EXPECT_GT(shared.size(), 0u);
      EXPECT_LE(shared.size(), 24u);
      EXPECT_EQ(Texts(&shared, task, {traces[0]}, &in_turn)[0], expected[0]) << "alone";
      EXPECT_EQ(Texts(&threaded, task, traces, &team), expected);
    }
  }
}

// The whole search proposes the same on any number of threads.
TEST(ScoringThreadsTest, TheirNumberChangesNothing) {
  for (const Task& task : Tasks()) {
    SCOPED_TRACE(task.name);
    std::map<int, std::vector<Candidate>> proposed;
    std::map<int, std::vector<std::pair<std::string, int>>> refused;
    for (const int threads : {1, 2, 7}) {
      ThreadTeam team(threads);
      Learner learner;
      ScheduleScorer scorer(task.workload, task.target, task.name, &learner,
                            std::make_shared<Appraiser>(&team));
      const SearchConfig config{.seed = 3, .generation_size = 8, .population = 24, .evolution_steps = 1};
      const auto search =
          MakeSearchStrategy(config, GenerateSketches(task.workload, task.target), {}, &scorer);
      ASSERT_TRUE(search.ok()) << search.status();
      for (int generation = 0; generation < 3; ++generation) {
        const auto asked = (*search)->Ask(generation, 8);
        ASSERT_TRUE(asked.ok()) << asked.status();
        for (const Candidate& candidate : *asked) {
          proposed[threads].push_back(candidate);
          const double seconds =
              *candidate.predicted_seconds * (1 + 0.5 * static_cast<double>(candidate.trace.size() % 7));
          ASSERT_TRUE((*search)->Tell({{candidate.generation, candidate.index, seconds, ""}}).ok());
        }
        for (const auto& refusal : (*search)->refusals()) refused[threads].push_back(refusal);
        ASSERT_TRUE(learner.Add(scorer.SamplesOf((*search)->ledger().generation(generation))).ok());
      }
    }
    ASSERT_EQ(proposed[1].size(), 24u);
    EXPECT_GT(proposed[1].back().model, 0u) << "a model that learned";
    EXPECT_EQ(proposed[2], proposed[1]);
    EXPECT_EQ(proposed[7], proposed[1]);
    EXPECT_EQ(refused[7], refused[1]);
  }
}

TEST(AppraiserTest, CodesOnThreadsAreThoseOfEachTraceAlone) {
  ThreadTeam team(3);
  Appraiser appraiser(&team);
  for (const Task& task : Tasks()) {
    const std::vector<Trace> traces = DrawnTraces(task, 24, 1);
    std::vector<const Trace*> asked;
    for (const Trace& trace : traces) asked.push_back(&trace);
    const auto codes = appraiser.CodesOf(task.name, task.workload, task.target, asked);
    ASSERT_EQ(codes.size(), traces.size());
    for (size_t i = 0; i < traces.size(); ++i) {
      const absl::StatusOr<std::string> alone = CodeDigest(task.workload, task.target, traces[i]);
      ASSERT_EQ(codes[i].ok(), alone.ok()) << PrintTrace(traces[i]);
      EXPECT_EQ(codes[i].value_or(""), alone.value_or("")) << PrintTrace(traces[i]);
    }
  }
}

TEST(XgboostModelTest, AnyNumberOfThreadsGivesTheSameBytes) {
  std::vector<Sample> samples = MakeSamples(4, 40, 1);
  for (size_t i = 0; i < samples.size(); i += 7) samples[i].seconds.reset();  // failures
  std::vector<const Sample*> pointers;
  for (const Sample& sample : samples) pointers.push_back(&sample);
  XgboostModel alone;
  ASSERT_TRUE(alone.Train(pointers, "task1").ok());
  ASSERT_GT(alone.metrics().trees, 0);
  ASSERT_GE(alone.metrics().failures, ModelConfig().min_failures);
  for (const int threads : {2, 5}) {
    ThreadTeam team(threads);
    XgboostModel divided;
    ASSERT_TRUE(divided.Train(pointers, "task1", &team).ok());
    EXPECT_EQ(*divided.Save(), *alone.Save());
  }
}

}  // namespace
}  // namespace mycc
