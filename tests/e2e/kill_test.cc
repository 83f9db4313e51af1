// kill -9 of the server and of a worker, again and again in the middle of a job with real kernels: the job
// ends with no record lost or repeated, and no candidate pays for it. Nothing here waits for a lease to run
// out, so the times of a slow machine do not matter.
#include <csignal>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "db/job_store.h"
#include "db/tuning_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mycc_tune/tuning_client.h"
#include "tests/e2e/log_of_others.h"
#include "tests/e2e/mycc_tune.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

constexpr uint32_t kTrials = 40;

class KillTest : public ::testing::Test {
 protected:
  std::vector<std::string> ServeArguments() const {
    return {"serve", "--listen", address_, "--log", folder_.Path("tuning.db")};
  }
  std::vector<std::string> WorkerArguments(const std::string& name) const {
    return {"worker", "--server", address_, "--name", name, "--builders", "2"};
  }
  v1::JobSpec Spec() const {
    v1::JobSpec spec = MakeSpec({kTestWorkload}, kTrials);
    spec.set_target("v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=1");
    return spec;
  }
  absl::StatusOr<v1::JobProgress> Watch(const std::string& job) {
    const auto client = TuningClient::Connect({.address = address_});
    return client.ok() ? (*client)->Watch(job, 0, 0) : client.status();
  }
  std::string Submit() {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = Spec();
    request.set_submission("the one");
    return Submit(request);
  }
  // Also to a server that is still starting.
  std::string Submit(const v1::SubmitJobRequest& request) {
    for (int attempt = 0; attempt < 100; ++attempt) {
      const auto client = TuningClient::Connect({.address = address_});
      const auto progress = (*client)->Submit(request);
      if (progress.ok()) return progress->job();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    ADD_FAILURE() << "no server answered";
    return "";
  }
  // Every trial of the job is finished, with one record.
  void ExpectWhole(const std::string& job) {
    auto log = TuningLog::Open(folder_.Path("tuning.db"), OpenMode::kServe);
    ASSERT_TRUE(log.ok()) << log.status();
    RecordFilter filter;
    filter.job = job;
    const auto records = (*log)->List(filter);
    ASSERT_TRUE(records.ok()) << records.status();
    std::set<std::string> trials;
    for (const StoredRecord& record : *records) {
      EXPECT_TRUE(trials.insert(record.record.trial()).second) << record.record.trial() << " twice";
      EXPECT_EQ(record.record.result().status(), v1::MEASURE_STATUS_OK) << record.record.result().error();
      // Records that the final round adds are no trials.
      if (!record.record.result().timing().final_round().empty()) trials.erase(record.record.trial());
    }
    const auto stored = JobStore(log->get()).LoadTrials(job, 0);
    ASSERT_TRUE(stored.ok()) << stored.status();
    EXPECT_EQ(stored->size(), kTrials);
    for (const Trial& trial : *stored) {
      EXPECT_EQ(trial.state, TrialState::kFinished) << trial.name;
      EXPECT_TRUE(trials.contains(trial.name)) << trial.name << " has no record";
    }
    EXPECT_EQ(trials.size(), stored->size());
  }

  TestFolder folder_;
  const std::string address_ = "unix:" + folder_.Path("socket");
};

TEST_F(KillTest, ServerAndWorkersDieAndNothingIsLost) {
  // Three kills of each, each when some more trials have finished and others are being measured; then the job
  // may end in peace.
  constexpr int kKills = 6;
  std::mt19937 random(11);
  const std::string output = folder_.Path("output");
  auto server = std::make_unique<Background>(ServeArguments(), output);
  auto worker = std::make_unique<Background>(WorkerArguments("w"), output);
  const std::string job = Submit();
  int kills = 0;
  int64_t finished_at_kill = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::seconds(480)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30));
    const auto progress = Watch(job);
    if (!progress.ok()) continue;                              // the server is starting
    if (progress->state() == v1::JOB_STATE_WAITING) continue;  // the server reads it from the log
    if (progress->state() != v1::JOB_STATE_RUNNING) break;
    if (kills == kKills || progress->trials() <= finished_at_kill) continue;
    finished_at_kill = progress->trials();
    if (++kills % 2 == 0) {
      server->Kill9();
      server = std::make_unique<Background>(ServeArguments(), output);
    } else {
      worker->Kill9();
      worker = std::make_unique<Background>(WorkerArguments("w"), output);
    }
  }
  const auto progress = Watch(job);
  ASSERT_TRUE(progress.ok()) << progress.status();
  EXPECT_EQ(progress->state(), v1::JOB_STATE_DONE) << progress->message();
  EXPECT_EQ(kills, kKills) << "the job was over too early";
  EXPECT_EQ(worker->Terminate(), 0);
  EXPECT_EQ(server->Terminate(), 0);
  ExpectWhole(job);
}

// The server and the worker inside `tune`: the same command again continues the job.
TEST_F(KillTest, TuneItselfDiesAndContinues) {
  const std::string file = folder_.Path("gemm.te"), output = folder_.Path("output");
  std::ofstream(file) << kTestWorkload;
  const std::vector<std::string> tune = {
      "tune", file, "--log", folder_.Path("tuning.db"), "--trials", std::to_string(kTrials)};
  {
    Background first(tune, output);
    ASSERT_TRUE(WaitForText(output, "started job", 60));
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    first.Kill9();
  }
  const Ran second = RunMyccTune(tune);
  EXPECT_EQ(second.exit_status, 0) << second.output;
  EXPECT_THAT(second.output, ::testing::HasSubstr("job j"));
  const Ran third = RunMyccTune(tune);
  EXPECT_EQ(third.exit_status, 0) << third.output;
  EXPECT_THAT(third.output, ::testing::HasSubstr("nothing to tune")) << third.output;
  ExpectWhole(JobIn(second.output));
}

// The trials that the worker inside `tune` held when it was killed are given out again at once, and not when
// its leases run out, 25 s later.
TEST_F(KillTest, TuneThatDiedHasItsNextResultAtOnce) {
  const std::string file = folder_.Path("gemm.te"), output = folder_.Path("output"),
                    log = folder_.Path("tuning.db");
  std::ofstream(file) << kTestWorkload;
  const std::vector<std::string> tune = {"tune", file, "--log", log, "--trials", "200"};
  {
    Background first(tune, output);
    ASSERT_TRUE(WaitForTrials(log, kLeasedInLog, 1, 60));
    first.Kill9();
  }
  ASSERT_GT(TrialsInLog(log, kLeasedInLog), 0) << "it held nothing when it died";
  const int64_t before = TrialsInLog(log, kFinishedInLog);
  const auto start = std::chrono::steady_clock::now();
  Background second(tune, output);
  ASSERT_TRUE(WaitForTrials(log, kFinishedInLog, before + 1, 60));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

// The job's state is in the log when the cancellation is answered.
TEST_F(KillTest, CancelledJobStaysCancelledWheneverTheServerDies) {
  const std::string output = folder_.Path("output"), log = folder_.Path("tuning.db");
  auto server = std::make_unique<Background>(ServeArguments(), output);
  const Background worker(WorkerArguments("w"), output);
  for (const int milliseconds : {0, 30, 100, 300, 600, 1000}) {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = Spec();
    request.mutable_spec()->set_seed(static_cast<uint64_t>(milliseconds));
    request.mutable_spec()->set_fresh(true);
    const std::string job = Submit(request);
    ASSERT_TRUE(WaitForTrials(log, kLeasedInLog, 1, 60));
    const auto client = TuningClient::Connect({.address = address_});
    const auto cancelled = (*client)->Cancel(job);
    ASSERT_TRUE(cancelled.ok()) << cancelled.status();
    EXPECT_EQ(cancelled->state(), v1::JOB_STATE_CANCELLED);
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    server->Kill9();
    server = std::make_unique<Background>(ServeArguments(), output);
    auto progress = Watch(job);
    for (int i = 0; i < 100 && !progress.ok(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      progress = Watch(job);
    }
    ASSERT_TRUE(progress.ok()) << progress.status();
    EXPECT_EQ(progress->state(), v1::JOB_STATE_CANCELLED) << "killed after " << milliseconds << " ms";
    EXPECT_EQ(TrialsInLog(log, kQueuedInLog, job), 0);
    EXPECT_EQ(TrialsInLog(log, kLeasedInLog, job), 0);
  }
  EXPECT_EQ(server->Terminate(), 0);
}

}  // namespace
}  // namespace mycc
