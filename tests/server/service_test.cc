// The service with real threads and real workers, but a pretended measure function. The same tests run in
// this process and over a local connection.

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "db/job_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mycc_tune/tuning_client.h"
#include "proto/names.h"
#include "server/grpc_server.h"
#include "server/server_loop.h"
#include "tests/server/fake_server.h"
#include "tests/server/judged.h"
#include "worker/grpc_link.h"
#include "worker/worker.h"

namespace mycc {
namespace {

template <typename Response>
absl::StatusOr<Response> Await(const std::function<void(Reply<Response>)>& start) {
  std::promise<absl::StatusOr<Response>> promise;
  start([&promise](absl::StatusOr<Response> answer) { promise.set_value(std::move(answer)); });
  return promise.get_future().get();
}

// A worker's line to a loop in the same process.
class LoopLink final : public ServerLink {
 public:
  explicit LoopLink(ServerLoop* loop) : loop_(loop) {}
  absl::StatusOr<v1::RegisterResponse> Register(const v1::RegisterRequest& request) override {
    return Await<v1::RegisterResponse>([&](auto reply) { loop_->Register(request, reply); });
  }
  absl::StatusOr<v1::LeaseResponse> Lease(const v1::LeaseRequest& request) override {
    return Await<v1::LeaseResponse>([&](auto reply) {
      loop_->Lease(
          request, [this] { return !stopped_; }, reply);
    });
  }
  absl::StatusOr<v1::ReportResponse> Report(const v1::ReportRequest& request) override {
    return Await<v1::ReportResponse>([&](auto reply) { loop_->Report(request, reply); });
  }
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request) override {
    return Await<v1::HeartbeatResponse>([&](auto reply) { loop_->Heartbeat(request, reply); });
  }
  absl::StatusOr<v1::LeaveResponse> Leave(const v1::LeaveRequest& request) override {
    return Await<v1::LeaveResponse>([&](auto reply) { loop_->Leave(request, reply); });
  }
  void StopWaiting() override { stopped_ = true; }

 private:
  ServerLoop* const loop_;
  std::atomic<bool> stopped_ = false;
};

// A worker on a thread.
class RunningWorker {
 public:
  RunningWorker(std::unique_ptr<ServerLink> link, const std::string& name, MeasureFunction measure)
      : link_(std::move(link)) {
    WorkerOptions options;
    options.name = name;
    options.first_retry_seconds = 0.01;
    options.last_retry_seconds = 0.05;
    WorkerDevice device;
    device.offer.set_device("cpu");
    device.offer.set_target(kTestTarget);
    device.batch = 3;
    device.measure = std::move(measure);
    worker_ = std::make_unique<Worker>(options, link_.get(), std::vector<WorkerDevice>{device});
    thread_ = std::thread([this] { EXPECT_TRUE(worker_->Run().ok()); });
  }
  ~RunningWorker() {
    worker_->Stop();
    thread_.join();
  }

 private:
  std::unique_ptr<ServerLink> link_;
  std::unique_ptr<Worker> worker_;
  std::thread thread_;
};

void Pretend(const std::vector<v1::Assignment>& assignments, const IsRevoked& is_revoked,
             const OnMeasured& done) {
  for (const v1::Assignment& assignment : assignments) {
    if (!is_revoked(assignment.lease())) done(assignment, FakeResults(assignment));
  }
}

class ServiceTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !kGrpcCanBeJudged) GTEST_SKIP() << "gRPC is not instrumented";
    Start();
  }
  ~ServiceTest() override { Stop(); }

  void Start() {
    auto log = TuningLog::Open(folder_.Path("test.db"), OpenMode::kServe);
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
    ServerLoopOptions options;
    options.coordinator = FakeServer::DefaultOptions();
    options.coordinator.dispatch.lease_seconds = 0.6;
    options.tick_seconds = 0.02;
    loop_ = std::make_unique<ServerLoop>(options, log_.get(), &SystemTime());
    ASSERT_TRUE(loop_->Start().ok());
    if (!GetParam()) return;
    ListenOptions listen;
    listen.address = "unix:" + folder_.Path("socket");
    auto grpc = GrpcServer::Start(listen, loop_.get());
    ASSERT_TRUE(grpc.ok()) << grpc.status();
    grpc_ = *std::move(grpc);
  }
  void Stop() {
    grpc_.reset();
    loop_.reset();
    log_.reset();
  }

  std::unique_ptr<ServerLink> Link() {
    if (!GetParam()) return std::make_unique<LoopLink>(loop_.get());
    auto link = ConnectToServer({.address = grpc_->address()});
    EXPECT_TRUE(link.ok()) << link.status();
    return *std::move(link);
  }
  std::unique_ptr<TuningClient> Client() {
    auto client = TuningClient::Connect({.address = grpc_->address()});
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  v1::JobProgress Submit(const v1::JobSpec& spec) {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = spec;
    absl::StatusOr<v1::JobProgress> progress = absl::UnknownError("");
    if (GetParam()) {
      progress = Client()->Submit(request);
    } else {
      const auto response =
          Await<v1::SubmitJobResponse>([&](auto reply) { loop_->SubmitJob(request, reply); });
      progress = response.ok() ? absl::StatusOr<v1::JobProgress>(response->progress()) : response.status();
    }
    EXPECT_TRUE(progress.ok()) << progress.status();
    return progress.ok() ? *progress : v1::JobProgress();
  }
  absl::StatusOr<v1::JobProgress> Watch(const std::string& job, uint64_t seen, double wait) {
    if (GetParam()) return Client()->Watch(job, seen, wait);
    v1::WatchJobRequest request;
    request.set_job(job);
    request.set_seen_revision(seen);
    request.set_wait_seconds(wait);
    const auto response = Await<v1::WatchJobResponse>([&](auto reply) {
      loop_->WatchJob(
          request, [] { return true; }, reply);
    });
    if (!response.ok()) return response.status();
    return response->progress();
  }
  v1::JobProgress WaitForEnd(v1::JobProgress progress) {
    while (progress.state() == v1::JOB_STATE_RUNNING || progress.state() == v1::JOB_STATE_WAITING) {
      const auto next = Watch(progress.job(), progress.revision(), 5);
      EXPECT_TRUE(next.ok()) << next.status();
      if (!next.ok()) break;
      progress = *next;
    }
    return progress;
  }
  size_t CountRecords(const std::string& job) {
    RecordFilter filter;
    filter.job = job;
    const auto log = TuningLog::Open(folder_.Path("test.db"), OpenMode::kRead);  // the other is the server's
    EXPECT_TRUE(log.ok()) << log.status();
    const auto records = (*log)->List(filter);
    EXPECT_TRUE(records.ok());
    return static_cast<size_t>(std::ranges::count_if(
        *records, [](const auto& stored) { return stored.record.result().timing().final_round().empty(); }));
  }

  TestFolder folder_;
  std::unique_ptr<TuningLog> log_;
  std::unique_ptr<ServerLoop> loop_;
  std::unique_ptr<GrpcServer> grpc_;
};

TEST_P(ServiceTest, TwoWorkersFinishTwoJobs) {
  const RunningWorker a(Link(), "a", Pretend), b(Link(), "b", Pretend);
  const v1::JobProgress first = Submit(MakeSpec({kTestWorkload}, 20)),
                        second = Submit(MakeSpec({kOtherWorkload}, 8, 2));
  for (const auto& [job, trials] : {std::pair(first, 20u), std::pair(second, 8u)}) {
    EXPECT_EQ(WaitForEnd(job).state(), v1::JOB_STATE_DONE);
    EXPECT_EQ(CountRecords(job.job()), trials);
  }
}

TEST_P(ServiceTest, TrialsOfASilentWorkerGoToAnother) {
  const v1::JobProgress job = Submit(MakeSpec({kTestWorkload}, 8));
  const std::unique_ptr<ServerLink> silent = Link();
  v1::RegisterRequest registration;
  registration.set_worker("silent");
  registration.add_devices()->set_device("cpu");
  registration.mutable_devices(0)->set_target(kTestTarget);
  const auto registered = silent->Register(registration);
  ASSERT_TRUE(registered.ok()) << registered.status();
  v1::LeaseRequest lease;
  lease.set_session(registered->session());
  lease.set_device("cpu");
  lease.set_max_trials(2);
  lease.set_wait_seconds(5);
  const auto leased = silent->Lease(lease);
  ASSERT_TRUE(leased.ok()) << leased.status();
  EXPECT_EQ(leased->assignments_size(), 2);
  const RunningWorker worker(Link(), "worker", Pretend);
  EXPECT_EQ(WaitForEnd(job).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(CountRecords(job.job()), 8u);
}

TEST_P(ServiceTest, LeaseWaitsForWork) {
  const std::unique_ptr<ServerLink> link = Link();
  v1::RegisterRequest registration;
  registration.set_worker("early");
  registration.add_devices()->set_device("cpu");
  registration.mutable_devices(0)->set_target(kTestTarget);
  const auto registered = link->Register(registration);
  ASSERT_TRUE(registered.ok()) << registered.status();
  v1::LeaseRequest lease;
  lease.set_session(registered->session());
  lease.set_device("cpu");
  lease.set_max_trials(4);
  lease.set_wait_seconds(30);
  auto leased = std::async(std::launch::async, [&] { return link->Lease(lease); });
  Submit(MakeSpec({kTestWorkload}, 4));
  const auto answer = leased.get();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_GT(answer->assignments_size(), 0);
}

TEST_P(ServiceTest, StoppedWorkerStopsWaiting) {
  const auto begin = std::chrono::steady_clock::now();
  { const RunningWorker worker(Link(), "idle", Pretend); }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << "a poll lasts 20 s";
}

TEST_P(ServiceTest, CancelEndsTheJob) {
  const v1::JobProgress job = Submit(MakeSpec({kTestWorkload}, 100));
  v1::CancelJobRequest cancel;
  cancel.set_job(job.job());
  const auto cancelled = Await<v1::CancelJobResponse>([&](auto reply) { loop_->CancelJob(cancel, reply); });
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(WaitForEnd(cancelled->progress()).state(), v1::JOB_STATE_CANCELLED);
}

TEST_P(ServiceTest, ServerRestartIsSurvived) {
  std::atomic<int> measured = 0;
  std::atomic<bool> go_on = false;
  const MeasureFunction pausing = [&](const std::vector<v1::Assignment>& assignments,
                                      const IsRevoked& is_revoked, const OnMeasured& done) {
    while (measured >= 5 && !go_on) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    measured += static_cast<int>(assignments.size());
    Pretend(assignments, is_revoked, done);
  };
  if (!GetParam()) GTEST_SKIP() << "a line within the process does not outlive its server";
  const RunningWorker worker(Link(), "w", pausing);
  const v1::JobProgress job = Submit(MakeSpec({kTestWorkload}, 20));
  while (measured < 5) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  Stop();
  go_on = true;  // results come while no server is there to take them
  Start();
  EXPECT_EQ(WaitForEnd(*Watch(job.job(), 0, 0)).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(CountRecords(job.job()), 20u);
}

INSTANTIATE_TEST_SUITE_P(Lines, ServiceTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Localhost" : "InProcess"; });

}  // namespace
}  // namespace mycc
