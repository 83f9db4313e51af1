// Lists of jobs that wait, run, and have ended.
#include "server/job_listing.h"

#include <functional>
#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "server/new_job.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;
using ::testing::SizeIs;

int64_t Count(FakeServer* server, const std::string& what) {
  return *server->log().database()->ReadInt("SELECT count(*) FROM " + what);
}

TEST(JobListingTest, AJobThatHasEndedIsShownFromItsSummary) {
  FakeServer server;
  const std::string job = server.Submit(MakeSpec({kTestWorkload, kOtherWorkload}, 4));
  FakeWorker(&server, "w").Work();
  const v1::JobProgress ended = server.Progress(job);
  EXPECT_EQ(ended.state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(ended.message(), "all trials are measured");
  EXPECT_EQ(ended.trials(), 8);
  EXPECT_EQ(ended.tasks_size(), 2);
  EXPECT_EQ(ended.devices_size(), 1);
  ASSERT_TRUE(server.log().database()->Execute("DELETE FROM trials").ok());  // nothing else is looked at
  EXPECT_TRUE(MessageDifferencer::Equals(server.Progress(job), ended));
  ASSERT_THAT(server.List(), SizeIs(1));
  EXPECT_EQ(server.List()[0].trials(), 8);
  EXPECT_EQ(server.List()[0].tasks_size(), 0);
}

TEST(JobListingTest, OneThatEndedUnderAnOlderBuildGetsItsSummaryWhenItIsShown) {
  for (const bool by_list : {true, false}) {
    FakeServer server;
    const std::string job = server.Submit(MakeSpec({kTestWorkload}, 4));
    FakeWorker(&server, "w").Work();
    v1::JobProgress ended = server.Progress(job);
    ASSERT_TRUE(server.log().database()->Execute("UPDATE jobs SET summary = x''").ok());
    if (by_list) {
      EXPECT_EQ(server.List()[0].trials(), 4);
    } else {
      EXPECT_EQ(server.Progress(job).trials(), 4);
    }
    EXPECT_EQ(Count(&server, "jobs WHERE summary != x''"), 1);
    v1::JobProgress shown = server.Progress(job);
    ended.clear_elapsed_seconds(), shown.clear_elapsed_seconds();  // by another clock
    EXPECT_TRUE(MessageDifferencer::Equals(shown, ended)) << shown.DebugString() << ended.DebugString();
  }
}

TEST(JobListingTest, CancelledJobsHaveTheirSummariesToo) {
  FakeServer server;
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 40));
  FakeWorker worker(&server, "w");
  for (const v1::Assignment& assignment : worker.Lease(3)) EXPECT_TRUE(worker.Report(assignment).ok());
  ASSERT_TRUE(server.Cancel(job).ok());
  EXPECT_EQ(Count(&server, "jobs WHERE summary != x''"), 1);
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(server.Progress(job).trials(), 3);
}

TEST(JobListingTest, TheNewestComeFirst) {
  FakeServer server;
  std::vector<std::string> jobs;
  for (uint64_t seed = 1; seed <= 3; ++seed)
    jobs.push_back(server.Submit(MakeSpec({kTestWorkload}, 4, seed)));
  FakeWorker(&server, "w").Work();
  ASSERT_THAT(server.List(2), SizeIs(2));
  EXPECT_EQ(server.List(2)[0].job(), jobs[2]);
  EXPECT_EQ(server.List(2)[1].job(), jobs[1]);
}

// The server dies between its answer and what it looks up for the job.
TEST(JobPreparationTest, AJobWithoutTasksIsPreparedByTheNextStart) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string known = server.Submit(MakeSpec({kTestWorkload}, 8));
  worker.Work();
  const JobRequest request{.spec = MakeSpec({kTestWorkload, kOtherWorkload}, 12), .submission = "mine"};
  ASSERT_TRUE(JobStore(&server.log()).CreateJob(MakeJob(JobId(7), request, 4), {}).ok());
  EXPECT_EQ(server.Progress(JobId(7)).trials_planned(), 24);
  server.Restart();
  EXPECT_EQ(server.Submit(request.spec, "mine"), JobId(7));
  EXPECT_EQ(server.Progress(JobId(7)).state(), v1::JOB_STATE_RUNNING);
  ASSERT_EQ(server.Progress(JobId(7)).tasks_size(), 2);
  EXPECT_EQ(server.Progress(JobId(7)).tasks(0).workload_name(), "gemm");
  worker.Register();
  worker.Work();
  EXPECT_EQ(server.Progress(JobId(7)).state(), v1::JOB_STATE_DONE);
  EXPECT_GT(server.Progress(JobId(7)).trials(), 12);
}

TEST(JobPreparationTest, AJobThatIsCancelledBeforeItIsPreparedNeverRuns) {
  FakeServer server;
  const JobRequest request{.spec = MakeSpec({kTestWorkload}, 8)};
  ASSERT_TRUE(JobStore(&server.log()).CreateJob(MakeJob(JobId(7), request, 4), {}).ok());
  v1::CancelJobRequest cancel;
  cancel.set_job(JobId(7));
  server.Restart([&](Coordinator& started) { started.jobs().Cancel(cancel, [](const auto&) {}); });
  EXPECT_EQ(server.Progress(JobId(7)).state(), v1::JOB_STATE_CANCELLED);
  FakeWorker worker(&server, "w");
  EXPECT_EQ(worker.Work(), 0);
}

// A search that calls `during` in place of its first answer, and is that of this process otherwise.
class SlowSearch final : public JobSearch {
 public:
  SlowSearch(std::unique_ptr<JobSearch> search, std::function<void()> during)
      : search_(std::move(search)), during_(std::move(during)) {}
  absl::StatusOr<SearchStep> Next(const TaskOutcomes& outcomes, double elapsed_seconds,
                                  uint32_t window) override {
    if (during_ != nullptr) std::exchange(during_, nullptr)();
    return search_->Next(outcomes, elapsed_seconds, window);
  }
  absl::StatusOr<ModelBytes> Models() override { return search_->Models(); }

 private:
  const std::unique_ptr<JobSearch> search_;
  std::function<void()> during_;
};

TEST(JobListingTest, ASearchThatStandsStillIsSpokenOf) {
  FakeServer* running = nullptr;
  std::vector<std::string> messages;
  const auto look = [&] { messages.push_back(running->List()[0].message()); };
  const auto during = [&] {
    for (const double seconds : {10, 50}) {
      running->time().Advance(seconds);
      look();
    }
  };
  FakeServer server(FakeServer::DefaultOptions(), [&](const SearchStart& start) {
    return std::make_unique<SlowSearch>(LocalSearch::Start(start).value(), during);
  });
  running = &server;
  server.Submit(MakeSpec({kTestWorkload}, 8));
  look();
  EXPECT_EQ(messages, (std::vector<std::string>{"", "its search has given no answer for 30 s", ""}));
}

TEST(ModelsTest, ThoseOfEndedJobsAreBounded) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    v1::JobSpec spec = MakeSpec({kTestWorkload}, 8, seed);
    spec.set_strategy("evolutionary");
    spec.set_fresh(true);
    server.Submit(spec);
    worker.Work();
    EXPECT_EQ(Count(&server, "models"), std::min<int64_t>(static_cast<int64_t>(seed), 3));
  }
}

TEST(LogThatIsGoneTest, JobsThatWaitHaveFailedToo) {
  CoordinatorOptions options = FakeServer::DefaultOptions();
  options.jobs.admission.max_running = 1;
  FakeServer server(options);
  FakeWorker worker(&server, "w");
  const std::string runs = server.Submit(MakeSpec({kTestWorkload}, 8));
  const std::string waits = server.Submit(MakeSpec({kOtherWorkload}, 8));
  const v1::Assignment held = worker.Lease(1).at(0);
  server.FailWrites(AsLogGone(absl::FailedPreconditionError("the log is gone")));
  ASSERT_TRUE(worker.Report(held).ok());
  server.Wait(5);
  for (const std::string& job : {runs, waits}) {
    EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_FAILED);
    EXPECT_EQ(server.Progress(job).message(), "the log is gone");
  }
}

TEST(LogThatIsGoneTest, IsTheReasonOfAJobWhoseTasksItDidNotTake) {
  CoordinatorOptions options = FakeServer::DefaultOptions();
  options.jobs.admission.max_running = 1;
  FakeServer server(options);
  FakeWorker worker(&server, "w");
  const std::string first = server.Submit(MakeSpec({kTestWorkload}, 1));
  const std::string next = server.Submit(MakeSpec({kOtherWorkload}, 8));
  server.HoldReadEnds(true);
  (void)server.Cancel(first);  // its turn comes, and what it finds is on its way
  server.FailWrites(AsLogGone(absl::FailedPreconditionError("the log is gone")));
  server.HoldReadEnds(false);
  server.Commit();
  server.Wait(5);
  EXPECT_EQ(server.Progress(next).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(server.Progress(next).message(), "the log is gone");
}

}  // namespace
}  // namespace mycc
