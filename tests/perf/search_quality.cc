// How good the search is (search_quality.sh): what it has found after 16 and 64 trials against what 1,000
// trials find, on eight CPU workloads, with five seeds. Prints a table and ends in the figures:
//
//   reach_64_of_1000     time of the best after 1,000 trials over that after 64, median of workloads, seeds
//   reach_16_warm        the same after 16, beginning with models and records of the other workloads
//   reach_16_cold        the same without them
//   raw_random_ratio     points drawn uniformly from the raw space, those that break its rules among them,
//                        until one is as fast as the best after 64, over 64
//   pairwise_accuracy    pairs of 256 uniformly drawn points, more than 3 % apart, that a model of the other
//                        workloads orders rightly
//   top5_of_best         the best of the five that this model likes best, against the best of the 256
//   candidates_scored_per_second
//                        different ones, on one core, in a search whose times are known already
//   predicted_of_best    the kernel that this model chooses without a measurement, against the best after 64
//
// A model of the other workloads has learned from what was measured of the other seven, and from random
// points of the workloads of CORPUS: as a user's log, it knows many tasks.
//
// Each workload has one search of 1,000 trials, and `the best` is the best of all that was measured.
// Which of the leaders is the best, and by how much, is timed in turn in one process, since the fastest of
// many single timings is partly the luckiest.
//
// On a host of many cores the times can be filled in by several processes, each on cores of its own
// (--searches I/N, then --figures I/N): each does every N-th part, and prints no figures.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "codegen/target/target.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/print.h"
#include "server/job_plan.h"
#include "server/local_search.h"
#include "tests/perf/measured_cache.h"
#include "tuner/cost/model_kind.h"
#include "tuner/cost/schedule_scorer.h"
#include "tuner/search/best_predicted.h"
#include "tuner/search/strategy.h"
#include "worker/child_main.h"

namespace mycc {
namespace {

struct Plan {
  int seeds = 5, long_trials = 1000, random_points = 256, corpus_points = 64;
  size_t workloads = 8, corpus_workloads = 64;
};

// A share of the work: every `of`-th part from `part` on.
struct Share {
  size_t part = 0, of = 1;
  bool Has(size_t index) const { return index % of == part; }
};
constexpr int kTrials = 64, kFewTrials = 16;
constexpr size_t kLeaders = 3;  // that are timed in turn
constexpr double kDistinct = 1.03;
constexpr int kRawDraws = 2000;  // that tell how many are legal

struct Tried {
  std::string trace;
  std::optional<double> seconds;
};
using Tries = std::vector<Tried>;  // in the order of the search

struct Task {
  JobPlan plan;
  std::string text;
  std::vector<Tries> cold, warm;  // of each seed
  Tries longest, random;

  const PlannedTask& planned() const { return plan.tasks[0]; }
};

// Counts the different traces that it predicts.
class CountingScorer final : public Scorer {
 public:
  explicit CountingScorer(Scorer* scorer) : scorer_(scorer) {}
  std::vector<absl::StatusOr<Prediction>> Score(const std::vector<const Trace*>& traces) override {
    for (const Trace* trace : traces) seen_.insert(PrintTrace(*trace));
    return scorer_->Score(traces);
  }
  size_t count() const { return seen_.size(); }

 private:
  Scorer* const scorer_;
  std::set<std::string> seen_;
};

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void Print(const char* name, double value) { std::printf("%s: %.4g\n", name, value); }

// The fastest of the first `count` tries.
std::vector<std::string> Leaders(const Tries& tries, size_t count) {
  std::vector<std::pair<double, std::string>> valid;
  for (size_t i = 0; i < std::min(count, tries.size()); ++i) {
    if (tries[i].seconds) valid.push_back({*tries[i].seconds, tries[i].trace});
  }
  std::ranges::sort(valid);
  std::vector<std::string> leaders;
  for (size_t i = 0; i < std::min(kLeaders, valid.size()); ++i) leaders.push_back(valid[i].second);
  return leaders;
}

class Quality {
 public:
  Quality(const Plan& plan, const std::vector<Workload>& workloads, const std::vector<Workload>& corpus,
          const std::string& cache)
      : plan_(plan), cache_(cache, PrintTarget(DetectHostTarget())) {
    for (size_t i = 0; i < std::min(plan.workloads, workloads.size()); ++i)
      tasks_.push_back(TaskOf(workloads[i]));
    for (size_t i = 0; i < std::min(plan.corpus_workloads, corpus.size()); ++i)
      corpus_.push_back(TaskOf(corpus[i]));
  }

  // The share's searches alone, the longest ones first.
  void Fill(const Share& share) {
    size_t next = 0;
    for (Task& task : tasks_) {
      if (share.Has(next++)) Search(task, "evolutionary", 1, plan_.long_trials, {}, {});
    }
    for (Task& task : tasks_) {
      if (share.Has(next++)) Search(task, "random", 1, plan_.random_points, {}, {});
    }
    for (Task& task : tasks_) {
      for (int seed = 1; seed <= plan_.seeds; ++seed) {
        if (share.Has(next++)) Search(task, "evolutionary", seed, kTrials, {}, {});
      }
    }
    for (Task& task : corpus_) {
      if (share.Has(next++)) Search(task, "random", 1, plan_.corpus_points, {}, {});
    }
  }

  // All searches, and the figures of the share's workloads.
  void Run(const Share& share) {
    for (Task& task : tasks_) {
      for (int seed = 1; seed <= plan_.seeds; ++seed)
        task.cold.push_back(Search(task, "evolutionary", seed, kTrials, {}, {}));
      task.longest = Search(task, "evolutionary", 1, plan_.long_trials, {}, {});
      task.random = Search(task, "random", 1, plan_.random_points, {}, {});
      Tell(task, "searched");
    }
    for (Task& task : corpus_) task.random = Search(task, "random", 1, plan_.corpus_points, {}, {});
    std::printf("%zu workloads of the corpus drawn\n", corpus_.size());
    std::vector<Task*> chosen;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (share.Has(i)) chosen.push_back(&tasks_[i]);
    }
    for (Task* task : chosen) {
      const ModelBytes models = ModelsWithout(*task);
      for (int seed = 1; seed <= plan_.seeds; ++seed)
        task->warm.push_back(Search(*task, "evolutionary", seed, kFewTrials, models, RecordsWithout(*task)));
      Tell(*task, "searched with what the others taught");
    }
    PrintFigures(chosen);
  }

 private:
  Task TaskOf(const Workload& workload) const {
    v1::JobSpec spec;
    spec.add_tasks()->set_workload(PrintWorkload(workload));
    spec.set_target(PrintTarget(DetectHostTarget()));
    spec.set_trials(static_cast<uint32_t>(plan_.long_trials));
    Task task{.plan = PlanJob(spec).value(), .text = "", .cold = {}, .warm = {}, .longest = {}, .random = {}};
    task.text = PrintWorkload(task.planned().workload);
    return task;
  }

  void Tell(const Task& task, const char* what) const {
    std::printf("%s %s (%lld schedules measured)\n", task.planned().key.workload_name.c_str(), what,
                static_cast<long long>(cache_.measured()));
    std::fflush(stdout);
  }

  // A job's search, measured as it goes.
  Tries Search(const Task& task, const std::string& strategy, int seed, int trials, const ModelBytes& models,
               const std::vector<std::string>& history) {
    v1::StoredJob job;
    *job.mutable_spec() = task.plan.spec;
    job.mutable_spec()->set_strategy(strategy);
    job.mutable_spec()->set_seed(static_cast<uint64_t>(seed));
    job.mutable_spec()->set_trials(static_cast<uint32_t>(trials));
    job.set_generation_size(16);
    std::vector<v1::StoredTask> stored(1);
    stored[0].set_count(1);
    for (const std::string& trace : history) stored[0].add_history(trace);
    SearchStart start{
        .job = &job, .tasks = &task.plan.tasks, .stored_tasks = &stored, .models = models, .proposals = {}};
    const auto search = LocalSearch::Start(start);
    MYCC_CHECK(search.ok()) << search.status();
    Tries tries;
    TaskOutcomes outcomes;
    while (true) {
      const auto step = (*search)->Next(outcomes, 0, 0);
      MYCC_CHECK(step.ok()) << step.status();
      if (!step->proposal) return tries;
      const v1::Proposal& proposal = *step->proposal;
      const std::vector<std::string> traces(proposal.traces().begin(), proposal.traces().end());
      const std::vector<TimedSchedule> timed = cache_.Measure(task.text, traces);
      outcomes[0].clear();
      for (size_t i = 0; i < traces.size(); ++i) {
        tries.push_back({traces[i], timed[i].seconds});
        outcomes[0].push_back({.generation = proposal.generation(),
                               .index = static_cast<uint32_t>(i),
                               .seconds = timed[i].seconds,
                               .failure = timed[i].failure});
      }
    }
  }

  // All that was measured of a task, each schedule once.
  std::vector<SearchLedger::Entry> Entries(const Task& task) const {
    std::vector<SearchLedger::Entry> entries;
    std::set<std::string> known;
    std::vector<const Tries*> all = {&task.longest, &task.random};
    for (const Tries& tries : task.cold) all.push_back(&tries);
    for (const Tries* tries : all) {
      for (const Tried& tried : *tries) {
        if (!known.insert(tried.trace).second) continue;
        SearchLedger::Entry entry;
        entry.candidate.trace = tried.trace;
        entry.outcome = Outcome{.seconds = tried.seconds, .failure = tried.seconds ? "" : "run_error"};
        entries.push_back(std::move(entry));
      }
    }
    return entries;
  }

  ModelBytes ModelsWithout(const Task& task) const {
    Learner learner;
    const auto learn = [&](const Task& other) {
      ScheduleScorer scorer(other.planned().workload, other.planned().target,
                            other.planned().key.workload_hash, &learner);
      MYCC_CHECK(learner.Add(scorer.SamplesOf(Entries(other))).ok());
    };
    for (const Task& other : corpus_) learn(other);
    for (const Task& other : tasks_) {
      if (&other != &task) learn(other);
    }
    const auto bytes = learner.Save();
    MYCC_CHECK(bytes.ok()) << bytes.status();
    return {{ModelKind(task.planned().target), *bytes}};
  }

  // The best schedules of the same computation at other shapes.
  std::vector<std::string> RecordsWithout(const Task& task) {
    std::vector<std::string> records;
    for (const Task& other : tasks_) {
      if (&other == &task || other.planned().key.shape_erased_hash != task.planned().key.shape_erased_hash)
        continue;
      for (const std::string& trace : Leaders(other.longest, other.longest.size())) records.push_back(trace);
    }
    return records;
  }

  // The time of the best of the first `count` tries over the anchor's.
  double BestRatio(const Task& task, const std::string& anchor, const Tries& tries, size_t count) {
    double best = HUGE_VAL;
    for (const auto& ratio : cache_.Compare(task.text, anchor, Leaders(tries, count)))
      best = std::min(best, ratio.value_or(HUGE_VAL));
    return best;
  }

  void PrintFigures(const std::vector<Task*>& tasks) {
    std::vector<double> reach_64, reach_cold, reach_warm, random_ratio, pairwise, top5, predicted;
    std::printf("\n%-26s %8s %8s %8s %8s %8s %8s %8s\n", "workload", "64", "16 cold", "16 warm", "random",
                "pairs", "top 5", "chosen");
    for (const Task* const each : tasks) {
      const Task& task = *each;
      const std::string anchor = Leaders(task.longest, task.longest.size()).at(0);
      double best = BestRatio(task, anchor, task.longest, task.longest.size());
      for (const Tries& tries : task.cold) {
        for (const size_t count : {size_t{kFewTrials}, size_t{kTrials}})
          best = std::min(best, BestRatio(task, anchor, tries, count));
      }
      for (const Tries& tries : task.warm) best = std::min(best, BestRatio(task, anchor, tries, kFewTrials));
      std::vector<double> of_64, of_cold, of_warm;
      for (const Tries& tries : task.cold) {
        of_64.push_back(best / BestRatio(task, anchor, tries, kTrials));
        of_cold.push_back(best / BestRatio(task, anchor, tries, kFewTrials));
      }
      for (const Tries& tries : task.warm)
        of_warm.push_back(best / BestRatio(task, anchor, tries, kFewTrials));
      Learner learner;
      MYCC_CHECK(learner.Load(ModelsWithout(task).begin()->second).ok());
      ScheduleScorer scorer(task.planned().workload, task.planned().target, "another task", &learner);
      const auto [pairs, top] = Ranking(task, &scorer);
      const double chosen = best / Median(of_64) /
                            cache_.Compare(task.text, anchor, {Chosen(task, &scorer)})[0].value_or(HUGE_VAL);
      const double random = RandomTries(task);
      std::printf("%-26s %8.3f %8.3f %8.3f %8.1f %8.3f %8.3f %8.3f\n",
                  task.planned().key.workload_name.c_str(), Median(of_64), Median(of_cold), Median(of_warm),
                  random, pairs, top, chosen);
      reach_64.insert(reach_64.end(), of_64.begin(), of_64.end());
      reach_cold.insert(reach_cold.end(), of_cold.begin(), of_cold.end());
      reach_warm.insert(reach_warm.end(), of_warm.begin(), of_warm.end());
      random_ratio.push_back(random), pairwise.push_back(pairs), top5.push_back(top),
          predicted.push_back(chosen);
    }
    const double scored = ScoredPerSecond();
    std::printf("\n");
    Print("reach_64_of_1000", Median(reach_64));
    Print("reach_16_warm", Median(reach_warm));
    Print("reach_16_cold", Median(reach_cold));
    Print("raw_random_ratio", Median(random_ratio));
    Print("pairwise_accuracy", Median(pairwise));
    Print("top5_of_best", Median(top5));
    Print("candidates_scored_per_second", scored);
    Print("predicted_of_best", Median(predicted));
  }

  // The share of the raw space's points that are legal and have a schedule.
  static double LegalShare(const std::vector<Sketch>& sketches) {
    std::mt19937_64 random(1);
    int legal = 0;
    for (int draw = 0; draw < kRawDraws; ++draw) {
      const Sketch& sketch = sketches[random() % sketches.size()];
      Choice choice;
      for (const Decision& decision : sketch.space.decisions)
        choice.push_back(static_cast<int>(random() % decision.choices.size()));
      legal += sketch.space.Legal(choice) && sketch.instantiate(choice).ok();
    }
    return std::max(1, legal) / double{kRawDraws};
  }

  // The raw points that are drawn until one is as fast as the median seed's best after 64, over 64; as many
  // as were drawn where none is. The random search begins with the defaults, which nobody draws.
  double RandomTries(const Task& task) const {
    const std::vector<Sketch> sketches = GenerateSketches(task.planned().workload, task.planned().target);
    std::set<std::string> defaults;
    for (const Sketch& sketch : sketches)
      defaults.insert(PrintTrace(sketch.instantiate(sketch.default_choice).value()));
    Tries drawn;
    for (const Tried& tried : task.random) {
      if (!defaults.contains(tried.trace)) drawn.push_back(tried);
    }
    std::vector<double> bests;
    for (const Tries& tries : task.cold) {
      double best = HUGE_VAL;
      for (const Tried& tried : tries) best = std::min(best, tried.seconds.value_or(HUGE_VAL));
      bests.push_back(best);
    }
    size_t needed = 0;
    while (needed < drawn.size() && drawn[needed].seconds.value_or(HUGE_VAL) > Median(bests)) ++needed;
    return static_cast<double>(std::min(needed + 1, drawn.size())) / LegalShare(sketches) / kTrials;
  }

  // The pairwise accuracy of the scorer on the random points, and the best of its five favourites against the
  // best.
  std::pair<double, double> Ranking(const Task& task, Scorer* scorer) const {
    std::vector<Trace> traces;
    std::vector<double> measured;
    for (const Tried& tried : task.random) {
      if (!tried.seconds) continue;
      traces.push_back(ParseTrace(tried.trace).value());
      measured.push_back(*tried.seconds);
    }
    std::vector<const Trace*> pointers;
    for (const Trace& trace : traces) pointers.push_back(&trace);
    const auto predictions = scorer->Score(pointers);
    std::vector<std::pair<double, double>> rows;  // predicted, measured
    for (size_t i = 0; i < traces.size(); ++i)
      rows.push_back({predictions[i].ok() ? predictions[i]->seconds : HUGE_VAL, measured[i]});
    double right = 0, pairs = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t j = 0; j < rows.size(); ++j) {
        if (rows[j].second < rows[i].second * kDistinct) continue;
        pairs += 1;
        right += rows[i].first < rows[j].first ? 1 : rows[i].first == rows[j].first ? 0.5 : 0;
      }
    }
    std::ranges::sort(rows);
    double top = HUGE_VAL;
    for (size_t i = 0; i < std::min<size_t>(5, rows.size()); ++i) top = std::min(top, rows[i].second);
    return {pairs > 0 ? right / pairs : 1, *std::ranges::min_element(measured) / top};
  }

  // The schedule that `mycc compile --model` chooses.
  std::string Chosen(const Task& task, Scorer* scorer) {
    std::vector<Trace> near;
    for (const std::string& trace : RecordsWithout(task)) near.push_back(ParseTrace(trace).value());
    const std::vector<Sketch> sketches = GenerateSketches(task.planned().workload, task.planned().target);
    const std::vector<Member> members = BestPredicted(sketches, near, scorer);
    MYCC_CHECK(!members.empty()) << "no schedule can be predicted";
    return members.front().trace;
  }

  // Searches of 64 trials whose times are known already, without models.
  double ScoredPerSecond() {
    double seconds = 0, scored = 0;
    for (const Task& task : tasks_) {
      const PlannedTask& planned = task.planned();
      Learner learner;
      ScheduleScorer scorer(planned.workload, planned.target, planned.key.workload_hash, &learner);
      CountingScorer counting(&scorer);
      const std::clock_t begun = std::clock();
      std::clock_t measuring = 0;
      const auto strategy =
          MakeSearchStrategy({.seed = 1}, GenerateSketches(planned.workload, planned.target), {}, &counting);
      MYCC_CHECK(strategy.ok()) << strategy.status();
      for (int generation = 0; generation < kTrials / 16; ++generation) {
        const auto asked = (*strategy)->Ask();
        MYCC_CHECK(asked.ok()) << asked.status();
        if (asked->empty()) break;
        std::vector<std::string> traces;
        for (const Candidate& candidate : *asked) traces.push_back(candidate.trace);
        const std::clock_t pause = std::clock();
        const std::vector<TimedSchedule> timed = cache_.Measure(task.text, traces);
        measuring += std::clock() - pause;
        std::vector<Outcome> outcomes;
        for (size_t i = 0; i < timed.size(); ++i)
          outcomes.push_back({static_cast<uint32_t>(generation), static_cast<uint32_t>(i), timed[i].seconds,
                              timed[i].failure});
        MYCC_CHECK((*strategy)->Tell(outcomes).ok());
        MYCC_CHECK(learner.Add(scorer.SamplesOf((*strategy)->ledger().generation(generation))).ok());
      }
      seconds += static_cast<double>(std::clock() - begun - measuring) / CLOCKS_PER_SEC;
      scored += static_cast<double>(counting.count());
    }
    return scored / seconds;
  }

  const Plan plan_;
  MeasuredCache cache_;
  std::vector<Task> tasks_, corpus_;
};

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  if (const std::optional<int> child = mycc::RunWorkerChild(argc, argv)) return *child;
  mycc::Plan plan;
  mycc::Share share;
  bool searches_alone = false;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    unsigned part = 0, of = 0;
    if (word == "--quick") {
      plan = {.seeds = 1,
              .long_trials = 80,
              .random_points = 24,
              .corpus_points = 16,
              .workloads = 2,
              .corpus_workloads = 3};
    } else if ((word == "--searches" || word == "--figures") && i + 1 < argc &&
               std::sscanf(argv[++i], "%u/%u", &part, &of) == 2 && 1 <= part && part <= of) {
      share = {part - 1, of};
      searches_alone = word == "--searches";
    } else {
      paths.push_back(word);
    }
  }
  if (paths.size() != 3) {
    std::fprintf(stderr,
                 "usage: search_quality [--quick] [--searches I/N | --figures I/N] WORKLOADS CORPUS CACHE\n");
    return 2;
  }
  const auto workloads = mycc::ParseWorkloads(mycc::ReadFile(paths[0]).value(), paths[0]);
  MYCC_CHECK(workloads.ok()) << workloads.status();
  const auto corpus = mycc::ParseWorkloads(mycc::ReadFile(paths[1]).value(), paths[1]);
  MYCC_CHECK(corpus.ok()) << corpus.status();
  mycc::Quality quality(plan, *workloads, *corpus, paths[2]);
  if (searches_alone) {
    quality.Fill(share);
  } else {
    quality.Run(share);
  }
  return 0;
}
