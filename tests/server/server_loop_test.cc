// The server's loop waits neither for the disk, nor for a long read of the log, nor for a search.
#include "server/server_loop.h"

#include <filesystem>
#include <future>
#include <memory>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "db/job_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr auto kSoon = std::chrono::seconds(60);

template <typename Response>
std::future<absl::StatusOr<Response>> Call(const std::function<void(Reply<Response>)>& start) {
  auto promise = std::make_shared<std::promise<absl::StatusOr<Response>>>();
  start([promise](absl::StatusOr<Response> answer) { promise->set_value(std::move(answer)); });
  return promise->get_future();
}

bool IsAnswered(const auto& call) {
  return call.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

class ServerLoopTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(Start(ServerLoopOptions())); }
  ~ServerLoopTest() override { Stop(); }

  void Start(ServerLoopOptions options) {
    Stop();
    auto log = TuningLog::Open(path_, OpenMode::kServe);
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
    options.coordinator = FakeServer::DefaultOptions();
    options.tick_seconds = 0.02;
    loop_ = std::make_unique<ServerLoop>(options, log_.get(), &SystemTime());
    ASSERT_TRUE(loop_->Start().ok());
    v1::RegisterRequest request;
    request.set_worker("w");
    request.set_names_what_it_holds(true);
    request.add_devices()->set_device("cpu");
    request.mutable_devices(0)->set_target(kTestTarget);
    const auto registered =
        Call<v1::RegisterResponse>([&](auto reply) { loop_->Register(request, reply); }).get();
    ASSERT_TRUE(registered.ok()) << registered.status();
    session_ = registered->session();
  }
  void Stop() {
    loop_.reset();
    log_.reset();
  }

  absl::Status Beat() {
    v1::HeartbeatRequest request;
    request.set_session(session_);
    return Call<v1::HeartbeatResponse>([&](auto reply) { loop_->Heartbeat(request, reply); }).get().status();
  }
  std::future<absl::StatusOr<v1::SubmitJobResponse>> Submit(const v1::JobSpec& spec) {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = spec;
    return Call<v1::SubmitJobResponse>([&](auto reply) { loop_->SubmitJob(request, reply); });
  }
  std::future<absl::StatusOr<v1::LeaseResponse>> Lease(uint32_t count) {
    v1::LeaseRequest request;
    request.set_session(session_);
    request.set_device("cpu");
    request.set_max_trials(count);
    request.set_wait_seconds(50);
    return Call<v1::LeaseResponse>([&](auto reply) {
      loop_->Lease(
          request, [] { return true; }, reply);
    });
  }
  std::future<absl::StatusOr<v1::WatchJobResponse>> Watch(const std::string& job, uint64_t seen) {
    v1::WatchJobRequest request;
    request.set_job(job);
    request.set_seen_revision(seen);
    request.set_wait_seconds(50);
    return Call<v1::WatchJobResponse>([&](auto reply) {
      loop_->WatchJob(
          request, [] { return true; }, reply);
    });
  }

  const TestFolder folder_;
  const std::string path_ = folder_.Path("test.db");
  std::unique_ptr<TuningLog> log_;
  std::unique_ptr<ServerLoop> loop_;
  std::string session_;
};

// A commit that takes as long as the test likes: the disk is slow, or somebody else writes.
TEST_F(ServerLoopTest, ACommitThatTakesLongHoldsUpOnlyWhatItAcknowledges) {
  const auto first = Submit(MakeSpec({kTestWorkload}, 8)).get();
  ASSERT_TRUE(first.ok()) << first.status();
  const auto held = Lease(1).get();
  ASSERT_TRUE(held.ok()) << held.status();
  ASSERT_EQ(held->assignments_size(), 1);
  auto other = Database::Open(path_, Database::Access::kReadWrite);
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE((*other)->Execute("BEGIN IMMEDIATE").ok());

  const auto submitted = Submit(MakeSpec({kTestWorkload}, 8, 2));
  v1::ReportRequest report;
  report.set_session(session_);
  *report.add_reports()->mutable_lease() = held->assignments(0).lease();
  *report.mutable_reports(0)->mutable_result() = FakeResult(held->assignments(0));
  const auto reported = Call<v1::ReportResponse>([&](auto reply) { loop_->Report(report, reply); });
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Beat().ok());
  const auto jobs = Call<v1::ListJobsResponse>([&](auto reply) { loop_->ListJobs({}, reply); }).get();
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->jobs_size(), 1);
  v1::BestRequest best;
  best.set_target(kTestTarget);
  EXPECT_TRUE(Call<v1::BestResponse>([&](auto reply) { loop_->Best(best, reply); }).get().ok());
  EXPECT_TRUE(Watch(first->progress().job(), 0).get().ok());
  EXPECT_FALSE(IsAnswered(submitted)) << "it is not in the log";
  EXPECT_FALSE(IsAnswered(reported)) << "it is not in the log";

  ASSERT_TRUE((*other)->Execute("COMMIT").ok());
  ASSERT_EQ(submitted.wait_for(kSoon), std::future_status::ready);
  ASSERT_EQ(reported.wait_for(kSoon), std::future_status::ready);
}

TEST_F(ServerLoopTest, ASearchThatTakesLongHoldsUpNeitherOtherSearchesNorTheLoop) {
  // Searches outlive the test's own variables.
  struct Gate {
    std::promise<void> reached, opened;
    std::shared_future<void> is_open = opened.get_future().share();
  };
  const auto gate = std::make_shared<Gate>();
  const absl::Cleanup open_gate = [gate] { gate->opened.set_value(); };
  ServerLoopOptions options;
  options.search_threads = 2;
  options.start_search = [gate](const SearchStart& start) {
    if (start.job->spec().seed() == 1) {
      gate->reached.set_value();
      gate->is_open.wait();
    }
    return LocalSearch::Start(start);
  };
  ASSERT_NO_FATAL_FAILURE(Start(options));
  ASSERT_TRUE(Submit(MakeSpec({kTestWorkload}, 8, 1)).get().ok());
  ASSERT_EQ(gate->reached.get_future().wait_for(kSoon), std::future_status::ready);
  ASSERT_TRUE(Submit(MakeSpec({kOtherWorkload}, 8, 2)).get().ok());
  const auto leased = Lease(4).get();
  ASSERT_TRUE(leased.ok()) << leased.status();
  EXPECT_GT(leased->assignments_size(), 0);
  EXPECT_TRUE(Beat().ok());
}

TEST_F(ServerLoopTest, ASubmissionIsAnsweredAndPreparedAfterwards) {
  const auto submitted = Submit(MakeSpec({kTestWorkload, kOtherWorkload}, 8)).get();
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  const v1::JobProgress& progress = submitted->progress();
  EXPECT_NE(progress.job(), "");
  EXPECT_EQ(progress.trials_planned(), 16);
  EXPECT_TRUE(progress.state() == v1::JOB_STATE_WAITING || progress.state() == v1::JOB_STATE_RUNNING);
  const auto leased = Lease(4).get();
  ASSERT_TRUE(leased.ok()) << leased.status();
  EXPECT_GT(leased->assignments_size(), 0);
  const auto refused = Submit(MakeSpec({"workload nonsense"}, 8)).get();
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument) << refused.status();
}

TEST_F(ServerLoopTest, ALogThatIsDeletedEndsWhatRunsWithThatReason) {
  const auto submitted = Submit(MakeSpec({kTestWorkload}, 100)).get();
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  const std::string job = submitted->progress().job();
  const auto leased = Lease(2).get();
  ASSERT_TRUE(leased.ok()) << leased.status();
  ASSERT_EQ(leased->assignments_size(), 2);
  std::filesystem::remove(path_);
  v1::ReportRequest request;
  request.set_session(session_);
  *request.add_reports()->mutable_lease() = leased->assignments(0).lease();
  *request.mutable_reports(0)->mutable_result() = FakeResult(leased->assignments(0));
  const auto reported = Call<v1::ReportResponse>([&](auto reply) { loop_->Report(request, reply); }).get();
  ASSERT_TRUE(reported.ok()) << reported.status();
  EXPECT_NE(reported->answers(0).kind(), v1::ReportAnswer::KEPT) << "it is in no log";
  uint64_t seen = 0;
  v1::JobProgress shown;
  while (shown.state() != v1::JOB_STATE_FAILED) {
    const auto watched = Watch(job, seen).get();
    ASSERT_TRUE(watched.ok()) << watched.status();
    shown = watched->progress();
    seen = shown.revision();
  }
  EXPECT_THAT(shown.message(), HasSubstr(path_ + ": was deleted or moved while it was open"));
  const auto refused = Submit(MakeSpec({kTestWorkload}, 8, 2)).get();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("was deleted or moved"));
}

TEST_F(ServerLoopTest, WhatWaitsWhenItStopsIsAnswered) {
  const auto lease = Lease(4);
  const auto watch = Watch("j0123456789abcdef", 0);
  const auto submitted = Submit(MakeSpec({kTestWorkload}, 8));
  Stop();
  EXPECT_TRUE(IsAnswered(lease));
  EXPECT_TRUE(IsAnswered(watch));
  EXPECT_TRUE(IsAnswered(submitted));
}

TEST_F(ServerLoopTest, ItsTurnsAreCounted) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Beat().ok());
  const LoopStats stats = loop_->stats();
  EXPECT_GE(stats.turns, 10);
  EXPECT_GT(stats.longest_turn_seconds, 0);
}

}  // namespace
}  // namespace mycc
