// Search strategies: determinism, restoring, no candidate twice, refusals.
#include "tuner/search/strategy.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/search_farm.h"
#include "tests/tuner/synthetic_space.h"
#include "tuner/search/known_codes.h"
#include "tuner/search/sampler.h"
#include "tuner/search/trust.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<SearchStrategy> Make(const SearchConfig& config, std::vector<Sketch> sketches,
                                     Scorer* scorer = nullptr, std::vector<Trace> history = {}) {
  auto strategy = MakeSearchStrategy(config, std::move(sketches), history, scorer);
  EXPECT_TRUE(strategy.ok()) << strategy.status();
  return *std::move(strategy);
}

SearchConfig Config(const std::string& strategy, uint64_t seed, int generation_size = 8) {
  SearchConfig config;
  config.strategy = strategy;
  config.seed = seed;
  config.generation_size = generation_size;
  config.population = 48;
  config.evolution_steps = 2;
  return config;
}

std::vector<std::vector<Candidate>> RunFarm(SearchStrategy* search, int generations, int workers,
                                            uint64_t seed) {
  return RunFarm(search, generations, workers, seed, MeasureSurface);
}

TEST(StrategyTest, CandidatesDoNotDependOnWorkersOrArrivalOrder) {
  for (const char* name : {"evolutionary", "random", "grid"}) {
    SurfaceScorer scorer(1, 0.5);
    const auto one = RunFarm(Make(Config(name, 7), {ContractionLikeSketch()}, &scorer).get(), 8, 1, 1);
    ASSERT_EQ(one.size(), 8u);
    for (uint64_t order = 0; order < 4; ++order) {
      const auto ten = RunFarm(Make(Config(name, 7), {ContractionLikeSketch()}, &scorer).get(), 8, 10, order);
      EXPECT_EQ(one, ten) << name << ", order " << order;
    }
  }
}

TEST(StrategyTest, SeedsDiffer) {
  SurfaceScorer scorer(1, 0.5);
  const auto a = Make(Config("evolutionary", 1), {ContractionLikeSketch()}, &scorer)->Ask();
  const auto b = Make(Config("evolutionary", 2), {ContractionLikeSketch()}, &scorer)->Ask();
  EXPECT_NE(*a, *b);
}

TEST(StrategyTest, OutcomesChangeTheNextButOneGeneration) {
  SurfaceScorer scorer(1, 0.5);
  std::vector<std::vector<Candidate>> third;
  for (const bool slow : {false, true}) {
    auto search = Make(Config("evolutionary", 1), {ContractionLikeSketch()}, &scorer);
    const auto first = *search->Ask(), second = *search->Ask();
    for (const Candidate& candidate : first) {
      Outcome outcome{0, candidate.index, 1e-3, ""};
      if ((candidate.index < 4) == slow) outcome.seconds = 1.0;
      ASSERT_TRUE(search->Tell({outcome}).ok());
    }
    third.push_back(*search->Ask());
  }
  EXPECT_NE(third[0], third[1]);
}

// The surface with all differences made small.
constexpr double kFlat = 0.2;
Outcome MeasureFlatSurface(const Candidate& candidate) {
  Outcome outcome = MeasureSurface(candidate);
  if (outcome.ok()) outcome.seconds = 1e-3 * std::pow(*outcome.seconds / 1e-3, kFlat);
  return outcome;
}

// Knows the flat surface, but for a factor that it learns once it is told.
class CalibratedScorer : public SurfaceScorer {
 public:
  explicit CalibratedScorer(double factor) : SurfaceScorer(kFlat, 0.1), factor_(factor) {}

  std::vector<absl::StatusOr<Prediction>> Score(const std::vector<const Trace*>& traces) override {
    auto predictions = SurfaceScorer::Score(traces);
    for (auto& prediction : predictions) {
      prediction->model = calibrated ? 1 : 0;
      if (!calibrated) prediction->seconds *= factor_;
    }
    return predictions;
  }
  bool calibrated = false;

 private:
  const double factor_;
};

// A model of the right order that is wrong by a factor is as good as one that is right: a correction that is
// learned on the way makes no difference.
TEST(StrategyTest, AFactorThatIsLearnedOnTheWayChangesNothing) {
  std::vector<std::vector<std::string>> runs;
  for (const double factor : {1.0, 2.0, 0.5}) {
    CalibratedScorer scorer(factor);
    auto search = Make(Config("evolutionary", 4), {ContractionLikeSketch()}, &scorer);
    std::vector<std::string>& traces = runs.emplace_back();
    std::vector<Candidate> measuring;
    for (int g = 0; g < 10; ++g) {
      scorer.calibrated = g >= 2;
      const std::vector<Candidate> asked = *search->Ask();
      EXPECT_TRUE(PredictionsLead(search->ledger().Fastest(std::max(0, g - 1))))
          << "factor " << factor << ", generation " << g;
      for (const Candidate& candidate : measuring)
        ASSERT_TRUE(search->Tell({MeasureFlatSurface(candidate)}).ok());
      for (const Candidate& candidate : asked) traces.push_back(candidate.trace);
      measuring = asked;
    }
  }
  EXPECT_EQ(runs[1], runs[0]);
  EXPECT_EQ(runs[2], runs[0]);
}

// A crash at every generation: recorded outcomes are restored, half of the last generation's are lost and
// measured again.
TEST(StrategyTest, RestoredSearchContinuesBitForBit) {
  SurfaceScorer scorer(1, 0.5);
  const auto whole =
      RunFarm(Make(Config("evolutionary", 3), {ContractionLikeSketch()}, &scorer).get(), 7, 4, 1);
  for (int crash = 1; crash < 7; ++crash) {
    auto search = Make(Config("evolutionary", 3), {ContractionLikeSketch()}, &scorer);
    for (int g = 0; g < crash; ++g) {
      std::vector<Candidate> recorded = whole[g];
      for (Candidate& candidate : recorded) candidate.point = {};  // the log keeps the trace, not the point
      std::ranges::reverse(recorded);
      ASSERT_TRUE(search->Restore(recorded).ok());
    }
    for (int g = 0; g < crash; ++g) {
      for (const Candidate& candidate : whole[g]) {
        if (g + 1 == crash && candidate.index % 2 == 1) continue;
        ASSERT_TRUE(search->Tell({MeasureSurface(candidate)}).ok());
      }
    }
    for (int g = crash; g < 7; ++g) {
      for (const Candidate& candidate : whole[g - 1])
        ASSERT_TRUE(search->Tell({MeasureSurface(candidate)}).ok());
      EXPECT_EQ(*search->Ask(), whole[g]) << "generation " << g << " after a crash at " << crash;
    }
  }
}

// Knows nothing, and refuses large register tiles.
class StrictScorer : public SurfaceScorer {
 public:
  StrictScorer() : SurfaceScorer(0, 0.5) {}
  std::vector<absl::StatusOr<Prediction>> Score(const std::vector<const Trace*>& traces) override {
    auto predictions = SurfaceScorer::Score(traces);
    for (size_t i = 0; i < traces.size(); ++i) {
      if (traces[i]->decisions[0].second * traces[i]->decisions[1].second > 256)
        predictions[i] = absl::ResourceExhaustedError("too many accumulators");
    }
    return predictions;
  }
};

// A search that goes on has seen more points refused than one that is restored.
TEST(StrategyTest, WhatEarlierGenerationsRefusedDoesNotCount) {
  StrictScorer scorer;
  const auto whole =
      RunFarm(Make(Config("evolutionary", 3), {ContractionLikeSketch()}, &scorer).get(), 12, 4, 1);
  for (size_t crash = 4; crash < whole.size(); ++crash) {
    auto search = Make(Config("evolutionary", 3), {ContractionLikeSketch()}, &scorer);
    for (size_t g = 0; g < crash; ++g) ASSERT_TRUE(search->Restore(whole[g]).ok());
    for (size_t g = 0; g < crash; ++g) {
      for (const Candidate& candidate : whole[g]) ASSERT_TRUE(search->Tell({MeasureSurface(candidate)}).ok());
    }
    EXPECT_EQ(*search->Ask(), whole[crash]) << "after a crash at " << crash;
  }
}

TEST(StrategyTest, AskingAgainWithRecordedOutcomesContinuesBitForBit) {
  SurfaceScorer scorer(1, 0.5);
  const auto whole =
      RunFarm(Make(Config("evolutionary", 5), {ContractionLikeSketch()}, &scorer).get(), 5, 4, 1);
  auto search = Make(Config("evolutionary", 5), {ContractionLikeSketch()}, &scorer);
  for (const auto& generation : whole) {
    EXPECT_EQ(*search->Ask(), generation);
    for (const Candidate& candidate : generation) ASSERT_TRUE(search->Tell({MeasureSurface(candidate)}).ok());
  }
}

TEST(StrategyTest, NothingIsProposedTwice) {
  for (const char* name : {"evolutionary", "random", "grid"}) {
    SurfaceScorer scorer(1, 0.5);
    std::set<std::string> traces;
    for (const auto& generation :
         RunFarm(Make(Config(name, 1, 16), {ContractionLikeSketch()}, &scorer).get(), 20, 3, 1)) {
      for (const Candidate& candidate : generation)
        EXPECT_TRUE(traces.insert(candidate.trace).second) << candidate.trace;
    }
    EXPECT_EQ(traces.size(), 320u);
  }
}

// The constraint leaves 9 of the 3 * 4 points in one sketch. The other has 5 points, but its decision changes
// nothing but its own record: 1.
std::vector<Sketch> SmallSketches() {
  Sketch tile = SketchOf("tile", {{"a", {1, 2, 4}}, {"b", {1, 2, 4, 8}}},
                         [](const Choice& c) { return c[0] + c[1] < 4; });
  Sketch idle = SketchOf("idle", {{"x", {1, 2, 3, 4, 5}, false}});
  idle.instantiate = [](const Choice& choice) -> absl::StatusOr<Trace> {
    Trace trace;
    trace.sketch = "idle";
    trace.decisions = {{"x", choice[0] + 1}};
    return trace;
  };
  return {tile, idle};
}

TEST(StrategyTest, SmallSpacesAreExhaustedCleanly) {
  for (const char* name : {"evolutionary", "random", "grid"}) {
    auto search = Make(Config(name, 1, 4), SmallSketches());
    std::set<std::string> steps;
    while (!search->Exhausted()) {
      const auto generation = search->Ask();
      ASSERT_TRUE(generation.ok()) << generation.status();
      for (const Candidate& candidate : *generation) {
        EXPECT_TRUE(steps.insert(StepsKey(*ParseTrace(candidate.trace))).second);
        ASSERT_TRUE(search->Tell({{candidate.generation, candidate.index, 1e-3, ""}}).ok());
      }
    }
    EXPECT_EQ(steps.size(), 10u) << name;
    EXPECT_TRUE(search->Ask()->empty());
  }
}

// Everything fails: the search goes on to the end of the space and says so.
TEST(StrategyTest, FailuresAloneEndCleanly) {
  auto search = Make(Config("evolutionary", 1, 4), SmallSketches());
  int candidates = 0;
  while (!search->Exhausted()) {
    const std::vector<Candidate> generation = *search->Ask();
    for (const Candidate& candidate : generation) {
      ++candidates;
      ASSERT_TRUE(search->Tell({{candidate.generation, candidate.index, std::nullopt, "run_error"}}).ok());
    }
  }
  EXPECT_EQ(candidates, 10);
  EXPECT_EQ(search->ledger().best(), nullptr);
}

class RefusingScorer : public Scorer {
 public:
  std::vector<absl::StatusOr<Prediction>> Score(const std::vector<const Trace*>& traces) override {
    return std::vector<absl::StatusOr<Prediction>>(traces.size(),
                                                   absl::FailedPreconditionError("17 accumulators of 16"));
  }
};

TEST(StrategyTest, RefusalsAreCounted) {
  RefusingScorer scorer;
  auto search = Make(Config("evolutionary", 1, 4), SmallSketches(), &scorer);
  EXPECT_TRUE(search->Ask()->empty());
  EXPECT_TRUE(search->Exhausted());
  ASSERT_EQ(search->refusals().size(), 1u);
  EXPECT_EQ(search->refusals()[0].first, "17 accumulators of 16");
  EXPECT_EQ(search->refusals()[0].second, 14);  // every legal point, once
}

// The order of the loops changes nothing in the code, and what unrolls eight times cannot be lowered.
class CodeScorer : public SurfaceScorer {
 public:
  CodeScorer() : SurfaceScorer(1, 0.5) {}
  std::vector<absl::StatusOr<std::string>> CodesOf(const std::vector<const Trace*>& traces) override {
    lowered += static_cast<int>(traces.size());
    most_together = std::max(most_together, traces.size());
    std::vector<absl::StatusOr<std::string>> codes;
    for (const Trace* trace : traces) codes.push_back(CodeOf(*trace));
    return codes;
  }
  absl::StatusOr<std::string> CodeOf(const Trace& trace) const {
    std::string code;
    for (const auto& [name, value] : trace.decisions) {
      if (name == "unroll" && value == 8) return absl::FailedPreconditionError("too many instructions");
      if (name != "order") absl::StrAppend(&code, name, "=", value, " ");
    }
    return code;
  }
  int lowered = 0;
  size_t most_together = 0;
};

std::string CodeOf(const Candidate& candidate) {
  return CodeScorer().CodeOf(*ParseTrace(candidate.trace)).value_or("none");
}

TEST(StrategyTest, EqualCodeIsProposedOnce) {
  for (const char* name : {"evolutionary", "random", "grid"}) {
    CodeScorer scorer;
    auto search = Make(Config(name, 2), {ContractionLikeSketch()}, &scorer);
    std::set<std::string> codes, reasons;
    for (int g = 0; g < 12; ++g) {
      const auto generation = search->Ask(g, 8);
      ASSERT_TRUE(generation.ok()) << generation.status();
      for (const Candidate& candidate : *generation) {
        EXPECT_TRUE(codes.insert(CodeOf(candidate)).second) << candidate.trace;
        ASSERT_TRUE(search->Tell({MeasureSurface(candidate)}).ok());
      }
      for (const auto& [reason, count] : search->refusals()) reasons.insert(reason);
    }
    EXPECT_EQ(codes.size(), 96u) << name << ": others take the places";
    EXPECT_FALSE(codes.contains("none"));
    if (std::string(name) != "evolutionary") continue;
    EXPECT_TRUE(reasons.contains("too many instructions"));
    EXPECT_TRUE(std::ranges::any_of(
        reasons, [](const std::string& reason) { return reason.find("same code as trial ") == 0; }));
    EXPECT_LT(scorer.lowered, 1500) << "of some 1800 that were predicted";
  }
}

// The codes of restored candidates are computed again: nothing else remembers them.
TEST(StrategyTest, CodesAreKnownAfterARestart) {
  CodeScorer scorer;
  const auto whole =
      RunFarm(Make(Config("evolutionary", 3), {ContractionLikeSketch()}, &scorer).get(), 8, 4, 1);
  for (int crash = 1; crash < 8; ++crash) {
    CodeScorer fresh;
    auto search = Make(Config("evolutionary", 3), {ContractionLikeSketch()}, &fresh);
    for (int g = 0; g < crash; ++g) ASSERT_TRUE(search->Restore(whole[g]).ok());
    for (int g = 0; g < crash; ++g) {
      for (const Candidate& candidate : whole[g]) ASSERT_TRUE(search->Tell({MeasureSurface(candidate)}).ok());
    }
    EXPECT_EQ(*search->Ask(), whole[crash]) << "after a crash at " << crash;
  }
}

// So that the scorer divides them among its threads.
TEST(StrategyTest, TheCodesOfAGenerationAreAskedForTogether) {
  CodeScorer scorer;
  auto search = Make(Config("evolutionary", 2), {ContractionLikeSketch()}, &scorer);
  const size_t size = search->Ask()->size();
  EXPECT_GE(2 * scorer.most_together, size);
  EXPECT_LE(static_cast<size_t>(scorer.lowered), 2 * size);
}

TEST(KnownCodesTest, TheLatestAreKnownInARestoredSearchToo) {
  CodeScorer scorer;
  auto search = Make(Config("random", 3), {ContractionLikeSketch()}, &scorer);
  KnownCodes grown(&scorer, /*most_candidates=*/20);
  for (int g = 0; g < 6; ++g) {
    ASSERT_TRUE(search->Ask(0, 8).ok());
    grown.CatchUp(search->ledger());
    KnownCodes restored(&scorer, /*most_candidates=*/20);
    restored.CatchUp(search->ledger());
    for (int i = 0; i <= g; ++i) {
      for (const SearchLedger::Entry& entry : search->ledger().generation(i)) {
        const std::string code = CodeOf(entry.candidate), known = restored.CandidateWith(code);
        EXPECT_EQ(grown.CandidateWith(code), known);
        EXPECT_EQ(known, i + 1 < g ? "" : absl::StrCat(i, "/", entry.candidate.index));
      }
    }
  }
}

TEST(StrategyTest, ASmallFirstGenerationHasTheBestDefaultAndTheBestOfADescent) {
  Sketch first = ContractionLikeSketch(), second = ContractionLikeSketch();
  second.default_choice = {6, 3, 5, 4, 1, 1, 0};
  second.name = "other";
  const auto instantiate = second.instantiate;
  second.instantiate = [instantiate](const Choice& choice) {
    auto trace = instantiate(choice);
    trace->sketch = "other";
    trace->steps.push_back(trace->steps.back());
    return trace;
  };
  SurfaceScorer scorer(1, 0.3);
  const auto generation = *Make(Config("evolutionary", 1), {first, second}, &scorer)->Ask(0, 4);
  ASSERT_EQ(generation.size(), 4u);
  EXPECT_EQ(generation[0].origin, Origin::kDefault);
  EXPECT_NE(generation[1].origin, Origin::kDefault);
  // No neighbour of the best one is predicted to be better.
  const std::vector<Sketch> sketches = {first, second};
  for (const Point& neighbour : Sampler(sketches).Neighbours(generation[1].point)) {
    const auto trace = sketches[neighbour.sketch].instantiate(neighbour.choice);
    EXPECT_GE(scorer.Score({&*trace})[0]->seconds, *generation[1].predicted_seconds);
  }
}

TEST(StrategyTest, ARulesStartsAreTriedFirst) {
  Sketch sketch = ContractionLikeSketch();
  sketch.starts = {{5, 3, 6, 3, 1, 1, 1}, {6, 3, 5, 4, 1, 1, 0}};
  SurfaceScorer scorer(1, 0.3);
  const auto generation = *Make(Config("evolutionary", 1), {sketch}, &scorer)->Ask();
  ASSERT_EQ(generation.size(), 8u);
  EXPECT_EQ(generation[0].origin, Origin::kDefault);
  for (size_t s = 0; s < sketch.starts.size(); ++s) {
    EXPECT_EQ(generation[1 + s].point, (Point{0, sketch.starts[s]}));
    EXPECT_EQ(generation[1 + s].origin, Origin::kStart);
    EXPECT_EQ(OriginName(generation[1 + s].origin), "start");
  }
  // A small one has one of them, the best predicted.
  const auto small = *Make(Config("evolutionary", 1), {sketch}, &scorer)->Ask(0, 4);
  ASSERT_EQ(small.size(), 4u);
  EXPECT_EQ(small[0].origin, Origin::kDefault);
  EXPECT_EQ(small[1].origin, Origin::kStart);
  EXPECT_NE(small[2].origin, Origin::kStart);
}

TEST(StrategyTest, FirstGenerationHasDefaultsHistoryAndTheAnalyticBest) {
  Sketch first = ContractionLikeSketch(), second = ContractionLikeSketch();
  second.name = "other";
  const auto instantiate = second.instantiate;
  second.instantiate = [instantiate](const Choice& choice) {
    auto trace = instantiate(choice);
    trace->sketch = "other";
    trace->steps.push_back(trace->steps.back());
    return trace;
  };
  Trace record = *first.instantiate({5, 3, 6, 3, 1, 1, 1});
  record.decisions[2].second = 200;  // of another shape: 192 is nearest
  SurfaceScorer scorer(1, 0.3);
  const auto generation = *Make(Config("evolutionary", 1), {first, second}, &scorer, {record})->Ask();
  ASSERT_EQ(generation.size(), 8u);
  EXPECT_EQ(generation[0].origin, Origin::kDefault);
  EXPECT_EQ(generation[0].point, (Point{0, first.default_choice}));
  EXPECT_EQ(generation[1].point, (Point{1, first.default_choice}));
  EXPECT_EQ(generation[2].origin, Origin::kHistory);
  EXPECT_EQ(generation[2].point, (Point{0, {5, 3, 6, 3, 1, 1, 1}}));
  for (size_t i = 4; i < generation.size(); ++i)
    EXPECT_LE(*generation[3].predicted_seconds, *generation[i].predicted_seconds);
}

TEST(StrategyTest, AskRefusesUntilItsOutcomesAreTold) {
  auto search = Make(Config("random", 1, 4), {ContractionLikeSketch()});
  const auto first = *search->Ask();
  ASSERT_TRUE(search->Ready());  // generation 1 sees nothing
  ASSERT_TRUE(search->Ask().ok());
  EXPECT_FALSE(search->Ready());
  const auto refused = search->Ask();
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("generation 2 depends on the first 1 generations"));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("0/0, 0/1, 0/2, 0/3"));
  for (const Candidate& candidate : first) ASSERT_TRUE(search->Tell({{0, candidate.index, 1e-3, ""}}).ok());
  EXPECT_TRUE(search->Ready());
}

TEST(StrategyTest, TellRefusesStrangersAndContradictions) {
  auto search = Make(Config("random", 1, 2), {ContractionLikeSketch()});
  EXPECT_EQ(search->Tell({{0, 0, 1e-3, ""}}).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(search->Ask().ok());
  EXPECT_TRUE(search->Tell({{0, 0, 1e-3, ""}}).ok());
  EXPECT_TRUE(search->Tell({{0, 0, 1e-3, ""}}).ok());
  EXPECT_THAT(std::string(search->Tell({{0, 0, 2e-3, ""}}).message()), HasSubstr("another one is known"));
  EXPECT_THAT(std::string(search->Tell({{0, 1, 0.0, ""}}).message()),
              HasSubstr("expected a positive, finite time"));
  EXPECT_THAT(std::string(search->Tell({{0, 2, 1e-3, ""}}).message()), HasSubstr("never proposed"));
}

TEST(StrategyTest, RestoreRefusesWhatIsNotTheNextGeneration) {
  const auto recorded = *Make(Config("random", 1, 2), {ContractionLikeSketch()})->Ask();
  const auto refusal = [&](std::vector<Candidate> generation) {
    const absl::Status status = Make(Config("random", 1, 2), {ContractionLikeSketch()})->Restore(generation);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal({}), HasSubstr("0 candidates; expected 1 to 2"));
  EXPECT_THAT(refusal({recorded[1]}), HasSubstr("expected 0/0"));
  EXPECT_THAT(refusal({recorded[0], recorded[0]}), HasSubstr("expected 0/1"));
  std::vector<Candidate> changed = recorded;
  changed[1].trace = "v1\nsketch softmax rows=4\n";
  EXPECT_THAT(refusal(changed), HasSubstr("not of these sketches"));
  changed[1].trace = changed[0].trace;
  EXPECT_THAT(refusal(changed), HasSubstr("the same steps"));
}

std::vector<Trace> ListOf(int count) {
  std::vector<Trace> traces;
  for (int i = 0; i < count; ++i)
    traces.push_back({"elsewhere", {}, {{"split", {StepArg{"t0.a0"}, StepArg{StepArg::Ints{i % 11}}}}}});
  return traces;
}

TEST(ListedSearchTest, ProposesWhatIsListedOnceAndEnds) {
  auto search = Make(Config("listed", 1, 4), {}, nullptr, ListOf(13));  // two repeat others
  std::vector<std::string> proposed;
  while (true) {
    const auto generation = search->Ask(0, 3);
    ASSERT_TRUE(generation.ok()) << generation.status();
    if (generation->empty()) break;
    for (const Candidate& candidate : *generation) {
      EXPECT_EQ(candidate.origin, Origin::kHistory);
      proposed.push_back(candidate.trace);
    }
  }
  ASSERT_EQ(proposed.size(), 11u) << "a generation that was cut left nothing out";
  for (size_t i = 0; i < proposed.size(); ++i) EXPECT_EQ(proposed[i], PrintTrace(ListOf(11)[i]));
  EXPECT_TRUE(search->Exhausted());
}

TEST(ListedSearchTest, GoesOnAfterARestart) {
  auto whole = Make(Config("listed", 1, 4), {}, nullptr, ListOf(10));
  const auto first = *whole->Ask(0, 4), second = *whole->Ask(0, 4);
  auto restored = Make(Config("listed", 1, 4), {}, nullptr, ListOf(10));
  ASSERT_TRUE(restored->Restore(first).ok());
  EXPECT_EQ(*restored->Ask(0, 4), second);
  EXPECT_EQ(*restored->Ask(0, 4), *whole->Ask(0, 4));
}

TEST(StrategyTest, SenselessConfigurationsAreRefused) {
  SearchConfig config = Config("magic", 1);
  EXPECT_THAT(std::string(MakeSearchStrategy(config, SmallSketches(), {}, nullptr).status().message()),
              HasSubstr("unknown strategy \"magic\"; expected evolutionary, descent, annealing, bayesian, "
                        "differential, random, grid or listed"));
  config = Config("random", 1, 0);
  EXPECT_FALSE(MakeSearchStrategy(config, SmallSketches(), {}, nullptr).ok());
  EXPECT_FALSE(MakeSearchStrategy(Config("random", 1), {}, {}, nullptr).ok());
}

}  // namespace
}  // namespace mycc
