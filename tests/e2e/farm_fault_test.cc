// Faults other than a death, in farms of real processes with recorded results: a worker that is stopped, a
// line that is half open, a wall clock that jumps, a disk that is full and enlarged, a server that is started
// again while twenty workers report. No finished trial is lost or measured twice, and the job ends as it does
// undisturbed.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "db/job_store.h"
#include "db/tuning_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mycc_tune/tuning_client.h"
#include "tests/e2e/farm.h"
#include "worker/grpc_link.h"
#include "worker/worker.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kTrials = 24;
constexpr double kSeconds = 300;  // for anything to happen

FarmOptions Options() {
  FarmOptions options;
  options.trials = kTrials;
  return options;
}

class FarmFaultTest : public ::testing::Test {
 protected:
  static void ExpectUndisturbed(Farm* farm) {
    EXPECT_TRUE(farm->WaitForEnd(kSeconds)) << farm->Said();
    const JobOutcome outcome = farm->End();
    EXPECT_EQ(outcome.given_up, 0);
    ExpectSame(outcome, Undisturbed(1, kTrials));
    if (HasFailure()) std::cout << farm->Said() << std::endl;
  }
};

// Its leases run out, others measure its trials, and it knows nothing of that when it goes on.
TEST_F(FarmFaultTest, AWorkerIsStoppedForSeveralLeases) {
  FarmOptions options = Options();
  options.lease_seconds = 0.5;
  Farm farm(options);
  farm.Start();
  farm.Submit();
  for (const int stopped : {0, 1, 0}) {
    const auto progress = farm.Progress();
    ASSERT_TRUE(progress.ok()) << progress.status();
    ASSERT_TRUE(farm.WaitForTrials(progress->trials() + 1, kSeconds));
    kill(farm.worker(stopped)->pid(), SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    kill(farm.worker(stopped)->pid(), SIGCONT);
  }
  ExpectUndisturbed(&farm);
}

TEST_F(FarmFaultTest, LinesGoDeadWithoutAWord) {
  FarmOptions options = Options();
  options.connects_by_proxy = true;
  Farm farm(options);
  farm.Start();
  farm.Submit();
  ASSERT_TRUE(farm.WaitForTrials(3, kSeconds));
  farm.proxy()->GoDeadOnOpenLines();
  // Calls that wait for an answer until their own limits would take a minute.
  const auto progress = farm.Progress();
  ASSERT_TRUE(progress.ok()) << progress.status();
  EXPECT_TRUE(farm.WaitForTrials(progress->trials() + 6, 30));  // more than were on their way
  EXPECT_GT(farm.proxy()->dead_lines(), 0);
  ExpectUndisturbed(&farm);
}

TEST_F(FarmFaultTest, TheWallClockJumps) {
  const TestFolder folder;
  const std::string clock = folder.Path("clock");
  std::ofstream(clock) << 0;
  FarmOptions options = Options();
  options.environment = {"LD_PRELOAD=" CLOCK_SHIM, absl::StrCat("MYCC_TEST_CLOCK=", clock)};
  options.has_one_clock = false;
  Farm farm(options);
  farm.Start();
  farm.Submit();
  constexpr int kYear = 365 * 86400;
  for (const int offset : {kYear, -kYear, 0}) {
    const auto progress = farm.Progress();
    ASSERT_TRUE(progress.ok()) << progress.status();
    ASSERT_TRUE(farm.WaitForTrials(progress->trials() + 2, kSeconds));
    std::ofstream(clock + ".new") << offset;
    rename((clock + ".new").c_str(), clock.c_str());
  }
  ExpectUndisturbed(&farm);
}

// A file system of this test's own, which its programs see as well.
class SmallDisk {
 public:
  explicit SmallDisk(std::string folder) : folder_(std::move(folder)) {
    is_there_ = unshare(CLONE_NEWNS) == 0 &&
                mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=8m") == 0;
  }
  ~SmallDisk() {
    if (is_there_) umount2(folder_.c_str(), MNT_DETACH);
  }
  bool is_there() const { return is_there_; }

  void Fill() const {
    const int fd = open((folder_ + "/filler").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const std::string bytes(4096, 'x');
    while (write(fd, bytes.data(), bytes.size()) > 0) {
    }
    close(fd);
  }
  bool Enlarge() const { return mount(nullptr, folder_.c_str(), nullptr, MS_REMOUNT, "size=64m") == 0; }

 private:
  const std::string folder_;
  bool is_there_ = false;
};

TEST_F(FarmFaultTest, AFullDiskIsEnlarged) {
  const TestFolder folder;
  const SmallDisk disk(folder.Path(""));
  if (!disk.is_there()) GTEST_SKIP() << "it takes root to mount a small disk";
  FarmOptions options = Options();
  options.log_folder = folder.Path(".");
  Farm farm(options);
  farm.Start();
  farm.Submit();
  ASSERT_TRUE(farm.WaitForTrials(3, kSeconds));
  disk.Fill();
  // A client that watches is told.
  std::string trouble;
  for (int i = 0; i < 3000 && trouble.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto progress = farm.Progress();
    if (progress.ok()) trouble = progress->trouble();
  }
  EXPECT_THAT(trouble, HasSubstr("disk is full"));
  const auto full = farm.Progress();
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_LT(full->trials(), static_cast<int64_t>(kTrials));
  ASSERT_TRUE(disk.Enlarge());
  ExpectUndisturbed(&farm);
}

// Workers whose device takes a moment for each candidate, and has results that are the trace's alone.
constexpr auto kMeasuring = std::chrono::milliseconds(10);
class ManyWorkers {
 public:
  ManyWorkers(const std::string& address, int count) {
    for (int i = 0; i < count; ++i) {
      links_.push_back(ConnectToServer({.address = address}).value());
      WorkerOptions options;
      options.name = absl::StrCat("w", i);
      options.instance = absl::StrCat("instance ", i);
      WorkerDevice device;
      device.offer.set_device("cpu");
      device.offer.set_target(kTestTarget);
      device.offer.mutable_info()->set_device("cpu");
      device.batch = 4;
      device.measure = [this](const auto& assignments, const auto& is_revoked, const auto& done) {
        for (const v1::Assignment& assignment : assignments) {
          if (is_revoked(assignment.lease())) continue;
          std::this_thread::sleep_for(kMeasuring);
          Count(assignment);
          done(assignment, FakeResults(assignment));
        }
      };
      workers_.push_back(
          std::make_unique<Worker>(options, links_.back().get(), std::vector<WorkerDevice>{device}));
    }
    for (const auto& worker : workers_)
      threads_.emplace_back([worker = worker.get()] { EXPECT_TRUE(worker->Run().ok()); });
  }
  ~ManyWorkers() { Stop(); }

  void Stop() {
    for (const auto& worker : workers_) worker->Stop();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  // How often each trial was measured.
  std::map<std::string, int> measured() {
    const MutexLock lock(&mutex_);
    return measured_;
  }

 private:
  void Count(const v1::Assignment& assignment) {
    const MutexLock lock(&mutex_);
    if (assignment.rivals().empty()) ++measured_[assignment.lease().trial()];
  }

  Mutex mutex_;
  std::map<std::string, int> measured_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<ServerLink>> links_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
};

// The traces and times of the job's records.
std::set<std::string> TuneWithManyWorkers(int restarts) {
  constexpr int kWorkers = 20;
  constexpr uint32_t kManyTrials = 240;  // fewer where a workload has no more candidates
  const TestFolder folder;
  const std::string address = "unix:" + folder.Path("socket"), output = folder.Path("output"),
                    log = folder.Path("tuning.db");
  const auto serve = [&] {
    return std::make_unique<Background>(std::vector<std::string>{"serve", "--listen", address, "--log", log},
                                        output);
  };
  auto server = serve();
  EXPECT_TRUE(WaitForText(output, "serving", 60));
  ManyWorkers workers(address, kWorkers);
  v1::SubmitJobRequest request;
  *request.mutable_spec() = MakeSpec({kTestWorkload, kOtherWorkload}, kManyTrials / 2);
  request.set_submission("the one");
  const auto client = TuningClient::Connect({.address = address});
  auto progress = (*client)->Submit(request);
  EXPECT_TRUE(progress.ok()) << progress.status();
  const std::string job = progress->job();
  int done = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kSeconds);
  while (std::chrono::steady_clock::now() < end) {
    progress = (*client)->Watch(job, 0, 0);
    if (progress.ok() && progress->state() != v1::JOB_STATE_RUNNING &&
        progress->state() != v1::JOB_STATE_WAITING)
      break;
    if (progress.ok() && done < restarts &&
        progress->trials() > kManyTrials / 2 * (done + 1) / (restarts + 2)) {
      server->Kill9();
      server = serve();
      ++done;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(done, restarts);
  EXPECT_TRUE(progress.ok() && progress->state() == v1::JOB_STATE_DONE) << ReadAll(output);
  workers.Stop();
  EXPECT_EQ(server->Terminate(), 0);
  for (const auto& [trial, times] : workers.measured()) EXPECT_EQ(times, 1) << trial;
  const auto opened = TuningLog::Open(log, OpenMode::kRead);
  EXPECT_TRUE(opened.ok()) << opened.status();
  RecordFilter filter;
  filter.job = job;
  const auto records = (*opened)->List(filter);
  EXPECT_TRUE(records.ok()) << records.status();
  std::set<std::string> results;
  size_t trials = 0;
  for (const StoredRecord& stored : *records) {
    const v1::Timing& timing = stored.record.result().timing();
    trials += timing.final_round().empty() ? 1 : 0;
    results.insert(absl::StrCat(timing.final_round().empty() ? "" : "round ", timing.seconds(), "\n",
                                stored.record.workload(), stored.record.trace()));
  }
  EXPECT_EQ(trials, workers.measured().size());
  EXPECT_GE(trials, kManyTrials / 2);
  return results;
}

TEST_F(FarmFaultTest, TheServerIsStartedAgainWhileTwentyWorkersReport) {
  const std::set<std::string> undisturbed = TuneWithManyWorkers(0);
  EXPECT_EQ(TuneWithManyWorkers(5), undisturbed);
}

}  // namespace
}  // namespace mycc
