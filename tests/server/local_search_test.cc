// A job's search across restarts: what the log keeps of it is enough to go on, with the same model.
#include "server/local_search.h"

#include <cmath>
#include <ctime>
#include <functional>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/scheduler_terms.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

constexpr char kDeepWorkload[] =
    "workload deep(x: f32[48,512], w: f32[512,64]) -> (y: f32[48,64]) {\n"
    "  y[i,j] = sum[k:512](x[i,k] * w[k,j])\n"
    "}\n";

// A job with one task for a GPU, whose builds take most of its time.
TEST(SchedulerTermsTest, AGpusSmallBudgetBeginsWithTen) {
  const auto least = [](const std::vector<const char*>& targets) {
    std::vector<PlannedTask> tasks;
    for (const char* target : targets) tasks.emplace_back().target = ParseTarget(target).value();
    return SchedulerOf(v1::StoredJob(), tasks).least_generation;
  };
  EXPECT_EQ(least({"h200"}), 10);
  EXPECT_EQ(least({"v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=2"}), 4);
  EXPECT_EQ(least({"h200", "h200"}), 4);
}

class LocalSearchTest : public ::testing::Test {
 protected:
  LocalSearchTest() {
    // The first task's space is small and soon exhausted.
    v1::JobSpec spec = MakeSpec({kOtherWorkload, kDeepWorkload}, 40, 3);
    spec.set_strategy("evolutionary");
    plan_ = PlanJob(spec).value();
    *job_.mutable_spec() = plan_.spec;
    job_.set_generation_size(4);
    for (const PlannedTask& task : plan_.tasks)
      analytic_.push_back(std::make_unique<ScheduleScorer>(task.workload, task.target, "", nullptr));
  }

  // A search that has taken up the proposals of `log`.
  std::unique_ptr<JobSearch> Start(const ModelBytes& models = {},
                                   const std::vector<v1::Proposal>& log = {}) const {
    SearchStart start;
    start.job = &job_;
    start.tasks = &plan_.tasks;
    start.stored_tasks = &stored_tasks_;
    start.models = models;
    start.proposals = log;
    return LocalSearch::Start(start).value();
  }
  // Half of what the analytic model says, and less the larger the first decision is: there is something to
  // learn.
  Outcome Measured(uint32_t task, uint32_t generation, uint32_t index, const std::string& text) const {
    const Trace trace = *ParseTrace(text);
    const double analytic = analytic_[task]->Score({&trace})[0]->analytic_seconds;
    const double first = static_cast<double>(trace.decisions[0].second);
    return {generation, index, analytic / (2 + std::log2(1 + std::abs(first))), ""};
  }
  // Goes on after `log`, to the end: a proposal's outcomes come while the next one is measured.
  std::vector<v1::Proposal> Run(JobSearch* search, std::vector<v1::Proposal> log = {}) const {
    size_t told = 0;
    while (true) {
      TaskOutcomes outcomes;
      for (; told + 1 < log.size(); ++told) {
        const v1::Proposal& proposal = log[told];
        for (int i = 0; i < proposal.traces_size(); ++i)
          outcomes[proposal.task()].push_back(
              Measured(proposal.task(), proposal.generation(), static_cast<uint32_t>(i), proposal.traces(i)));
      }
      const auto next = search->Next(outcomes, 0, 0);
      EXPECT_TRUE(next.ok()) << next.status();
      if (!next.ok() || !next->proposal) return log;
      log.push_back(*next->proposal);
    }
  }

  JobPlan plan_;
  v1::StoredJob job_;
  const std::vector<v1::StoredTask> stored_tasks_ = std::vector<v1::StoredTask>(2);
  std::vector<std::unique_ptr<ScheduleScorer>> analytic_;
};

// But for what was refused: a search that begins again counts anew what the one before it had found out.
void ExpectSame(std::vector<v1::Proposal> a, std::vector<v1::Proposal> b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t r = 0; r < a.size(); ++r) {
    a[r].mutable_state()->clear_refusals();
    b[r].mutable_state()->clear_refusals();
    EXPECT_EQ(a[r].SerializeAsString(), b[r].SerializeAsString()) << "proposal " << r;
  }
}

TEST_F(LocalSearchTest, GoesOnWithTheSameModelAfterARestart) {
  const auto earlier = Start();
  Run(earlier.get());
  const ModelBytes models = earlier->Models().value();
  const std::vector<v1::Proposal> whole = Run(Start(models).get());
  ASSERT_GE(whole.size(), 11u);
  EXPECT_EQ(whole[0].state().model(), 0u);
  EXPECT_GT(whole.back().state().model(), 32u);
  for (const size_t crash : {size_t{2}, whole.size() - 4, whole.size() - 2, whole.size() - 1}) {
    SCOPED_TRACE(crash);
    const std::vector<v1::Proposal> log(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(crash));
    ExpectSame(Run(Start(models, log).get(), log), whole);
  }
}

// A job that was begun by a build that kept no model with its predictions.
TEST_F(LocalSearchTest, OlderStatesResume) {
  std::vector<v1::Proposal> log = Run(Start().get());
  log.resize(8);
  for (v1::Proposal& proposal : log) proposal.mutable_state()->clear_model();
  const std::vector<v1::Proposal> resumed = Run(Start({}, log).get(), log);
  ASSERT_GT(resumed.size(), 8u);
  EXPECT_FALSE(resumed[7].state().has_model());
  EXPECT_GT(resumed[8].state().model(), 20u);
  ExpectSame(Run(Start({}, log).get(), log), resumed);
}

TEST_F(LocalSearchTest, TheNumberOfThreadsChangesNothing) {
  const auto search_on = [&](int threads) {
    auto search = LocalSearch::Create(job_, plan_.tasks, stored_tasks_, {}).value();
    search->SetThreads(threads);
    return Run(search.get());
  };
  const std::vector<v1::Proposal> on_one = search_on(1);
  ASSERT_GE(on_one.size(), 11u);
  ExpectSame(search_on(2), on_one);
  ExpectSame(search_on(7), on_one);
}

TEST_F(LocalSearchTest, AClassWithoutAModelBeginsWithThatOfTheNearest) {
  const auto earlier = Start();
  Run(earlier.get());
  const ModelBytes own = earlier->Models().value();
  ASSERT_EQ(own.size(), 1u);
  const std::string bytes = own.begin()->second;
  ASSERT_EQ(own.begin()->first, "cost-avx2");
  const std::vector<v1::Proposal> taught = Run(Start(own).get()), untaught = Run(Start().get());
  ASSERT_NE(taught[0].SerializeAsString(), untaught[0].SerializeAsString());
  ExpectSame(Run(Start({{"cost-avx512", bytes}, {"cost-amx", "of another class"}}).get()), taught);
  ExpectSame(Run(Start({{"cost-sm_90a", bytes}}).get()), untaught);
}

// A server plans what anybody submits: spaces are made by the search alone, in a process of its own.
TEST(JobPlanTest, PlanningMakesNoSpaces) {
  std::string text = "workload w(x: f32[8,8]) -> (y: f32[8,8]) {\n  a0[i,j]: f32[8,8] = x[j,i]\n";
  for (int s = 1; s <= 250; ++s)
    absl::StrAppend(&text, "  a", s, "[i,j]: f32[8,8] = a", s - 1,
                    "[(i * 3 + i // 2 + j) % 8, (j + i) % 8]\n");
  text += "  y[i,j] = a250[i,j]\n}\n";
  v1::JobSpec spec = MakeSpec({text}, 8);
  spec.mutable_tasks(0)->set_target("a100");
  const auto seconds = [](const std::function<void()>& work) {
    const std::clock_t begun = std::clock();  // of this process alone
    work();
    return static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
  };
  absl::StatusOr<JobPlan> plan = absl::UnknownError("");
  const double planning = seconds([&] { plan = PlanJob(spec); });
  ASSERT_TRUE(plan.ok()) << plan.status();
  const double space = seconds([&] { GenerateSketches(plan->tasks[0].workload, plan->tasks[0].target); });
  EXPECT_LT(planning, space / 2);
  spec.set_strategy("magic");
  EXPECT_THAT(std::string(PlanJob(spec).status().message()),
              ::testing::HasSubstr("unknown strategy \"magic\"; expected evolutionary, descent"));
}

}  // namespace
}  // namespace mycc
