// A server of another build takes up a job whose recorded proposals are not of its spaces: the search begins
// anew with the results so far, says so, and the job comes to its end.
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/local_search.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A search that remembers which version of the rules proposed a trace, and restores traces of its own version
// alone. It outlives servers, as the rules of a build do.
class Rules {
 public:
  StartSearch Start() {
    return [this](const SearchStart& start) -> absl::StatusOr<std::unique_ptr<JobSearch>> {
      for (const v1::Proposal& proposal : start.proposals) {
        if (proposal.generation() < (*start.stored_tasks)[proposal.task()].first_generation()) continue;
        for (const std::string& trace : proposal.traces()) {
          if (version_of_[trace] != version)
            return absl::OutOfRangeError(absl::StrCat("a trace is of version ", version_of_[trace]));
        }
      }
      absl::StatusOr<std::unique_ptr<JobSearch>> search = LocalSearch::Start(start);
      if (!search.ok()) return search.status();
      ++started;
      return std::unique_ptr<JobSearch>(new Versioned(this, *std::move(search)));
    };
  }

  int version = 1;
  int started = 0;

 private:
  class Versioned final : public JobSearch {
   public:
    Versioned(Rules* rules, std::unique_ptr<JobSearch> search) : rules_(rules), search_(std::move(search)) {}
    absl::StatusOr<SearchStep> Next(const TaskOutcomes& outcomes, double elapsed_seconds,
                                    uint32_t window) override {
      absl::StatusOr<SearchStep> step = search_->Next(outcomes, elapsed_seconds, window);
      if (step.ok() && step->proposal) {
        for (const std::string& trace : step->proposal->traces())
          rules_->version_of_[trace] = rules_->version;
      }
      return step;
    }
    absl::StatusOr<ModelBytes> Models() override { return search_->Models(); }

   private:
    Rules* const rules_;
    const std::unique_ptr<JobSearch> search_;
  };

  std::map<std::string, int> version_of_;
};

class ChangedRulesTest : public ::testing::TestWithParam<const char*> {
 protected:
  v1::JobSpec Spec() const {
    v1::JobSpec spec = MakeSpec({kTestWorkload, kOtherWorkload}, 24, 7);
    spec.set_strategy(GetParam());
    return spec;
  }
  void Measure(int trials) {
    for (int i = 0; i < trials; ++i) {
      for (const v1::Assignment& assignment : worker_.Lease(1)) EXPECT_TRUE(worker_.Report(assignment).ok());
    }
  }
  void Upgrade() {
    ++rules_.version;
    server_.Restart();
    worker_.RegisterAgain();
  }

  Rules rules_;
  FakeServer server_{FakeServer::DefaultOptions(), rules_.Start()};
  FakeWorker worker_{&server_, "w"};
};

TEST_P(ChangedRulesTest, TheJobGoesOnAndSaysSo) {
  const std::string job = server_.Submit(Spec(), "same");
  Measure(13);
  const std::map<std::string, std::string> before = server_.TracesOf(job);
  Upgrade();
  EXPECT_THAT(server_.Progress(job).message(), HasSubstr("its search began anew after"));
  EXPECT_THAT(server_.Progress(job).message(), HasSubstr("a trace is of version 1"));
  worker_.Work();
  const v1::JobProgress progress = server_.Progress(job);
  EXPECT_EQ(progress.state(), v1::JOB_STATE_DONE);
  EXPECT_THAT(progress.message(), HasSubstr("its search began anew after")) << "also when it has ended";
  EXPECT_EQ(progress.tasks(0).trials(), 24) << "the trials before count";
  EXPECT_GE(progress.tasks(1).trials(), 16) << "its space is small";
  const std::map<std::string, std::string> after = server_.TracesOf(job);
  for (const auto& [trial, trace] : before) EXPECT_EQ(after.at(trial), trace) << "nothing is lost";
}

TEST_P(ChangedRulesTest, TheSameRulesContinueWhatBeganAnew) {
  const std::string job = server_.Submit(Spec(), "same");
  Measure(9);
  Upgrade();
  Measure(9);
  const int started = rules_.started;
  server_.Restart();
  worker_.RegisterAgain();
  EXPECT_EQ(rules_.started, started + 1) << "it is restored at once";
  worker_.Work();
  EXPECT_EQ(server_.Progress(job).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(server_.Progress(job).tasks(0).trials(), 24);
}

TEST_P(ChangedRulesTest, TwiceIsNoTroubleEither) {
  const std::string job = server_.Submit(Spec(), "same");
  for (int i = 0; i < 2; ++i) {
    Measure(7);
    Upgrade();
  }
  worker_.Work();
  EXPECT_EQ(server_.Progress(job).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(server_.Progress(job).tasks(0).trials(), 24);
}

TEST_P(ChangedRulesTest, WhatIsNotWrittenIsTriedAgain) {
  const std::string job = server_.Submit(Spec(), "same");
  Measure(9);
  ++rules_.version;
  server_.FailWrites(absl::UnavailableError("the disk is full"));
  server_.Restart();
  server_.Wait(2);
  EXPECT_EQ(server_.Progress(job).state(), v1::JOB_STATE_RUNNING);
  server_.FailWrites(absl::OkStatus());
  server_.Wait(2);
  worker_.RegisterAgain();
  worker_.Work();
  EXPECT_EQ(server_.Progress(job).state(), v1::JOB_STATE_DONE);
}

// The candidates after the change are a function of the spec, the results and the place of the change.
TEST_P(ChangedRulesTest, AreDeterministic) {
  std::map<std::string, std::string> first;
  for (int run = 0; run < 2; ++run) {
    Rules rules;
    FakeServer server(FakeServer::DefaultOptions(), rules.Start());
    FakeWorker worker(&server, "w");
    const std::string job = server.Submit(Spec(), "same");
    for (int i = 0; i < 10; ++i) {
      for (const v1::Assignment& assignment : worker.Lease(1)) EXPECT_TRUE(worker.Report(assignment).ok());
    }
    ++rules.version;
    server.Restart();
    worker.RegisterAgain();
    if (run == 1) server.Restart();  // once more, with the rules that it began anew with
    if (run == 1) worker.RegisterAgain();
    worker.Work();
    if (run == 0) {
      first = server.TracesOf(job);
    } else {
      EXPECT_EQ(server.TracesOf(job), first);
    }
  }
}

TEST(UnchangedRulesTest, SayNothing) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 24), "same");
  for (const v1::Assignment& assignment : worker.Lease(3)) EXPECT_TRUE(worker.Report(assignment).ok());
  server.Restart();
  worker.RegisterAgain();
  EXPECT_THAT(server.Progress(job).message(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Strategies, ChangedRulesTest, ::testing::Values("random", "evolutionary"));

}  // namespace
}  // namespace mycc
