// A job's search in a process of its own: it proposes as a search in this process does, and its crashes end
// its job alone. The crashes are planted in this program, which is also the search's.
#include "server/search_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "server/local_search.h"
#include "server/search_child.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

// How a search's process goes wrong, and when it is asked for which proposal: "signal 3".
constexpr char kPlant[] = "MYCC_TEST_PLANT";

[[noreturn]] void Hang() {
  for (volatile int spins = 0;;) spins = spins + 1;
}

// Ends the program by the signal; a sanitizer's handler would exit in its place.
[[noreturn]] void Crash() {
  std::signal(SIGSEGV, SIG_DFL);
  std::raise(SIGSEGV);
  std::abort();
}

void GoWrong(const std::string& how) {
  MYCC_CHECK(how != "check") << "a planted one";
  if (how == "signal") Crash();
  if (how == "kill") raise(SIGKILL);
  if (how == "hang") Hang();
  if (how == "exit") std::_Exit(3);
  while (how == "memory") new std::vector<char>(size_t{64} << 20, 'x');
}

v1::SearchReply AnswerOrGoWrong(SearchAnswerer* answerer, const v1::SearchRequest& request) {
  static int proposals = 0;
  std::istringstream plant(std::getenv(kPlant) == nullptr ? "" : std::getenv(kPlant));
  std::string how;
  int proposal = 0;
  if (request.has_next() && ++proposals > 0 && plant >> how >> proposal && proposals == proposal)
    GoWrong(how);
  return answerer->Answer(request);
}

// A job of two tasks, as its search begins with it.
struct TestJob {
  explicit TestJob(const std::string& strategy) {
    v1::JobSpec spec = MakeSpec({kTestWorkload, kOtherWorkload}, 24, 7);
    spec.set_strategy(strategy);
    const JobPlan plan = PlanJob(spec).value();
    tasks = plan.tasks;
    *stored.mutable_spec() = plan.spec;
    stored.set_generation_size(4);
    for (const PlannedTask& task : tasks) stored_tasks.emplace_back().set_count(task.count);
  }
  SearchStart Start() const {
    return {
        .job = &stored, .tasks = &tasks, .stored_tasks = &stored_tasks, .models = {}, .proposals = proposals};
  }
  // Asks for a proposal and keeps it, with what its candidates come to.
  bool Step(JobSearch* search) {
    const auto step = search->Next(untold, 1, 0);
    EXPECT_TRUE(step.ok()) << step.status();
    untold.clear();
    if (!step.ok() || !step->proposal) return false;
    const v1::Proposal& proposal = proposals.emplace_back(*step->proposal);
    for (int i = 0; i < proposal.traces_size(); ++i) {
      v1::Assignment assignment;
      assignment.set_trace(proposal.traces(i));
      Outcome& outcome = untold[proposal.task()].emplace_back();
      outcome.generation = proposal.generation();
      outcome.index = static_cast<uint32_t>(i);
      if (i % 3 != 2) outcome.seconds = FakeResult(assignment).timing().seconds();
      if (i % 3 == 2) outcome.failure = "build_error";
      told[proposal.task()].push_back(outcome);
    }
    return true;
  }

  v1::StoredJob stored;
  std::vector<PlannedTask> tasks;
  std::vector<v1::StoredTask> stored_tasks;
  std::vector<v1::Proposal> proposals;
  TaskOutcomes untold, told;
};

absl::StatusOr<std::unique_ptr<JobSearch>> StartProcess(const TestJob& job,
                                                        const SearchProcessOptions& options = {}) {
  return SearchProcess::Start(options, job.Start());
}

// Without what was refused: a search that begins again counts anew what the one before it had found out.
std::vector<std::string> Bytes(const std::vector<v1::Proposal>& proposals) {
  std::vector<std::string> bytes;
  for (v1::Proposal proposal : proposals) {
    proposal.mutable_state()->clear_refusals();
    bytes.push_back(proposal.SerializeAsString());
  }
  return bytes;
}

class SearchProcessTest : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv(kPlant); }
};

// A job for many classes of devices begins with a model of each.
TEST_F(SearchProcessTest, ModelsMayTakeMoreThanAMessage) {
  const TestJob job("evolutionary");
  SearchStart start = job.Start();
  for (int kind = 0; kind < 9; ++kind) start.models[absl::StrCat("cost-", kind)] = std::string(10 << 20, 'x');
  const auto process = SearchProcess::Start({}, start);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_TRUE((*process)->Next({}, 0, 0).ok());
}

TEST_F(SearchProcessTest, TheSameRoundsAndModelsAsInThisProcess) {
  for (const char* strategy : {"random", "evolutionary"}) {
    TestJob here(strategy), there(strategy);
    const auto local = LocalSearch::Start(here.Start());
    ASSERT_TRUE(local.ok()) << local.status();
    while (here.Step(local->get())) {
    }
    EXPECT_EQ((*local)->Next({}, 1, 0)->stop_reason, StopReason::kTrials);
    auto process = StartProcess(there);
    ASSERT_TRUE(process.ok()) << process.status();
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(there.Step(process->get()));
    // Another process, on three processors, goes on where the first one was ended.
    there.untold = there.told;
    process = StartProcess(there, {.cores = std::make_shared<SearchCores>(3)});
    ASSERT_TRUE(process.ok()) << process.status();
    while (there.Step(process->get())) {
    }
    EXPECT_EQ((*process)->Next({}, 1, 0)->stop_reason, StopReason::kTrials);
    EXPECT_EQ(Bytes(here.proposals), Bytes(there.proposals)) << strategy;
    EXPECT_EQ((*local)->Models().value(), (*process)->Models().value()) << strategy;
  }
}

TEST_F(SearchProcessTest, WhatIsRefusedIsNoCrash) {
  TestJob job("random");
  auto process = StartProcess(job);
  ASSERT_TRUE(job.Step(process->get()));
  job.proposals[0].set_traces(0, "v1\nnonsense\n");
  const absl::Status refused = StartProcess(job).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("this build searches other spaces"));
}

struct Planted {
  const char* how;
  const char* words;
  double answer_seconds = 60;
};
void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.how; }

class PlantedCrashTest : public SearchProcessTest, public ::testing::WithParamInterface<Planted> {};

TEST_P(PlantedCrashTest, IsAnErrorOfOneSearch) {
  TestJob job("random");
  const SearchProcessOptions options{.memory_bytes = int64_t{7} << 27,
                                     .task_memory_bytes = int64_t{1} << 26,
                                     .answer_seconds = GetParam().answer_seconds};
  setenv(kPlant, absl::StrCat(GetParam().how, " 1").c_str(), 1);
  const auto process = StartProcess(job, options);
  ASSERT_TRUE(process.ok()) << process.status();
  for (int i = 0; i < 2; ++i) {  // also whoever asks again is told
    const absl::Status crashed = (*process)->Next({}, 1, 0).status();
    EXPECT_EQ(crashed.code(), absl::StatusCode::kAborted);
    EXPECT_THAT(std::string(crashed.message()), HasSubstr(i == 0 ? GetParam().words : "it has ended"));
  }
  unsetenv(kPlant);
  auto next = StartProcess(job);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_TRUE(job.Step(next->get()));
}

INSTANTIATE_TEST_SUITE_P(
    Ways, PlantedCrashTest,
    ::testing::Values(Planted{"check", "the search crashed: signal 6 (Aborted): "},
                      Planted{"check", "does not hold: a planted one"},
                      Planted{"signal", "the search crashed: signal 11 (Segmentation fault)"},
                      Planted{"kill", "the search crashed: signal 9 (Killed)"},
                      Planted{"hang", "the search crashed: it did not answer within 0.5 s", 0.5},
                      Planted{"exit", "the search crashed: exit status 3"}
#ifndef ABSL_HAVE_THREAD_SANITIZER
                      ,
                      Planted{"memory", "the search crashed: it ran out of its 1 GiB of memory"}
#endif
                      ));

// A server whose searches run in processes, each with what `plant` says of it, given how many began before.
class CrashingServer {
 public:
  explicit CrashingServer(std::function<std::string(const SearchStart&, int)> plant)
      : server(FakeServer::DefaultOptions(), [this, plant = std::move(plant)](const SearchStart& start) {
          setenv(kPlant, plant(start, starts++).c_str(), 1);
          auto search = SearchProcess::Start({}, start);
          unsetenv(kPlant);
          return search;
        }) {}

  int starts = 0;
  FakeServer server;
};

v1::JobSpec EvolutionarySpec(uint64_t seed) {
  v1::JobSpec spec = MakeSpec({kTestWorkload}, 24, seed);
  spec.set_strategy("evolutionary");
  return spec;
}

TEST(CrashingSearchTest, IsBuiltOnceMoreAndGoesOnAsIfNothingHadHappened) {
  FakeServer undisturbed;
  const std::string expected = undisturbed.Submit(EvolutionarySpec(7), "same");
  FakeWorker(&undisturbed, "w").Work();

  CrashingServer crashing(
      [](const SearchStart&, int before) { return before % 2 == 0 ? "kill 2" : "kill 4"; });
  FakeServer& server = crashing.server;
  const std::string job = server.Submit(EvolutionarySpec(7), "same");
  FakeWorker worker(&server, "w");
  for (int i = 0; i < 3; ++i) {
    for (const v1::Assignment& assignment : worker.Lease(4)) EXPECT_TRUE(worker.Report(assignment).ok());
  }
  EXPECT_GE(server->search_crashes(), 1);
  EXPECT_THAT(server.Progress(job).message(), HasSubstr("its search was begun again after a crash"));
  EXPECT_THAT(server.Progress(job).message(), HasSubstr("the search crashed: signal 9 (Killed)"));
  worker.Work();
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE) << server.Progress(job).message();
  EXPECT_GT(crashing.starts, 2);
  const auto traces = [](FakeServer* of, const std::string& id) {
    std::vector<std::string> found;
    for (const auto& [trial, trace] : of->TracesOf(id)) found.push_back(trial.substr(id.size()) + trace);
    return found;
  };
  EXPECT_EQ(traces(&server, job), traces(&undisturbed, expected));
}

// More jobs run than searches are allowed: those at rest make room, and are made again from the log.
TEST(BoundedSearchesTest, JobsContinueBitForBit) {
  const auto traces_of = [](int most_searches, int* starts) {
    CoordinatorOptions options = FakeServer::DefaultOptions();
    options.jobs.most_searches = most_searches;
    FakeServer server(options, [starts](const SearchStart& start) {
      ++*starts;
      return SearchProcess::Start({}, start);
    });
    FakeWorker worker(&server, "w");
    std::vector<std::string> jobs;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      v1::JobSpec spec = EvolutionarySpec(seed);
      spec.set_fresh(true);  // else the first one measures for all
      jobs.push_back(server.Submit(spec, absl::StrCat(seed)));
    }
    for (int turn = 0; turn < 200; ++turn) {
      for (int wait = 0; turn == 20 && wait < 7; ++wait) {  // a long rest
        server.Wait(9);
        EXPECT_TRUE(worker.Beat().ok());
      }
      server.Wait(0.1);
      for (const v1::Assignment& assignment : worker.Lease(2)) EXPECT_TRUE(worker.Report(assignment).ok());
    }
    std::vector<std::string> traces;
    for (const std::string& job : jobs) {
      EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE) << server.Progress(job).message();
      for (const auto& [trial, trace] : server.TracesOf(job)) traces.push_back(trace);
    }
    return traces;
  };
  int unbounded = 0, bounded = 0;
  const std::vector<std::string> expected = traces_of(64, &unbounded);
  EXPECT_EQ(unbounded, 4);
  EXPECT_EQ(traces_of(2, &bounded), expected);
  EXPECT_GT(bounded, 4) << "some were made again";
}

TEST(CrashingSearchTest, ThatCrashesAgainEndsItsJobAloneAndForGood) {
  CrashingServer crashing(
      [](const SearchStart& start, int) { return start.job->spec().seed() == 1 ? "check 1" : ""; });
  FakeServer& server = crashing.server;
  const std::string bad = server.Submit(EvolutionarySpec(1), "bad");
  const std::string good = server.Submit(EvolutionarySpec(2), "good");
  EXPECT_EQ(crashing.starts, 3);
  server.Restart();
  FakeWorker(&server, "w").Work();
  EXPECT_EQ(server.Progress(good).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(server.TracesOf(good).size(), 24u);
  EXPECT_EQ(server.Progress(bad).state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(server.Progress(bad).message(), HasSubstr("the search crashed: signal 6 (Aborted)"));
  EXPECT_THAT(server.Progress(bad).message(), HasSubstr("a planted one"));
  EXPECT_EQ(crashing.starts, 4) << "a restart does not walk into it again";
}

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  mycc::SearchAnswerer answerer;
  const auto answer = [&answerer](const auto& request) { return mycc::AnswerOrGoWrong(&answerer, request); };
  if (const std::optional<int> code = mycc::RunSearchChild(argc, argv, answer)) return *code;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
