#include "worker/worker.h"

#include <deque>
#include <functional>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// A server of one worker: hands out what a test queues, and answers as the test says.
class FakeServer final : public ServerLink {
 public:
  absl::StatusOr<v1::RegisterResponse> Register(const v1::RegisterRequest& request) override {
    const MutexLock lock(&mutex_);
    registrations_.push_back(request);
    if (!refuse_.ok()) return refuse_;
    v1::RegisterResponse response;
    session_ = "s" + std::to_string(registrations_.size());
    response.set_session(session_);
    response.set_lease_seconds(10);
    response.set_heartbeat_seconds(60);
    for (const v1::LeaseId& lease : request.held()) {
      if (lease.trial() == lose_) *response.add_lost() = lease;
    }
    changed_.NotifyAll();
    return response;
  }
  absl::StatusOr<v1::LeaseResponse> Lease(const v1::LeaseRequest& request) override {
    const MutexLock lock(&mutex_);
    while (queue_.empty() && !stopped_) changed_.Wait(&mutex_);
    if (stopped_) return absl::CancelledError("stopping");
    if (request.session() != session_) return absl::NotFoundError("unknown session");
    v1::LeaseResponse response;
    while (!queue_.empty() && response.assignments_size() < static_cast<int>(request.max_trials())) {
      v1::Assignment& assignment = *response.add_assignments();
      assignment.mutable_lease()->set_trial(queue_.front());
      assignment.mutable_lease()->set_attempt(1);
      queue_.pop_front();
    }
    for (const std::string& trial : revoke_) {
      v1::LeaseId& lease = *response.mutable_instructions()->add_revoked();
      lease.set_trial(trial);
      lease.set_attempt(1);
    }
    return response;
  }
  absl::StatusOr<v1::ReportResponse> Report(const v1::ReportRequest& request) override {
    const MutexLock lock(&mutex_);
    ++report_calls_;
    if (!report_errors_.empty()) {
      const absl::Status error = report_errors_.front();
      report_errors_.pop_front();
      if (absl::IsNotFound(error)) session_.clear();
      return error;
    }
    for (const v1::Report& report : request.reports()) committed_.push_back(report.lease().trial());
    changed_.NotifyAll();
    return v1::ReportResponse();
  }
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest&) override {
    return v1::HeartbeatResponse();
  }
  absl::StatusOr<v1::LeaveResponse> Leave(const v1::LeaveRequest&) override {
    const MutexLock lock(&mutex_);
    left_ = true;
    return v1::LeaveResponse();
  }
  void StopWaiting() override {
    const MutexLock lock(&mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }

  void Queue(std::vector<std::string> trials) {
    const MutexLock lock(&mutex_);
    queue_.insert(queue_.end(), trials.begin(), trials.end());
    changed_.NotifyAll();
  }
  void WaitForCommitted(size_t count) {
    const MutexLock lock(&mutex_);
    while (committed_.size() < count) changed_.Wait(&mutex_);
  }

  // What tests set before the worker runs and read after it ended.
  absl::Status refuse_;
  std::deque<absl::Status> report_errors_;
  std::vector<std::string> revoke_;
  std::string lose_;
  std::vector<v1::RegisterRequest> registrations_;
  std::vector<std::string> committed_;
  int report_calls_ = 0;
  bool left_ = false;

 private:
  Mutex mutex_;
  CondVar changed_;
  std::string session_;
  std::deque<std::string> queue_;
  bool stopped_ = false;
};

class WorkerTest : public ::testing::Test {
 protected:
  ~WorkerTest() override { Finish(); }

  void Start() {
    WorkerOptions options;
    options.name = "tester";
    options.first_retry_seconds = options.last_retry_seconds = 0.001;
    WorkerDevice device;
    device.offer.set_device("cpu");
    device.batch = 2;
    device.measure = [this](const std::vector<v1::Assignment>& assignments, const IsRevoked& is_revoked,
                            const OnMeasured& done) {
      for (const v1::Assignment& assignment : assignments) {
        if (is_revoked(assignment.lease())) continue;
        measured_.push_back(assignment.lease().trial());
        if (on_measure_) on_measure_(assignment.lease().trial());
        v1::MeasureResult result;
        result.set_status(v1::MEASURE_STATUS_OK);
        done(assignment, {result});
      }
    };
    worker_ = std::make_unique<Worker>(options, &server_, std::vector<WorkerDevice>{device});
    thread_ = std::thread([this] { ended_ = worker_->Run(); });
  }
  void Finish() {
    if (!thread_.joinable()) return;
    worker_->Stop();
    thread_.join();
  }

  FakeServer server_;
  std::function<void(const std::string&)> on_measure_;
  std::vector<std::string> measured_;
  std::unique_ptr<Worker> worker_;
  std::thread thread_;
  absl::Status ended_;
};

TEST_F(WorkerTest, MeasuresReportsAndLeaves) {
  server_.Queue({"a", "b", "c"});
  Start();
  server_.WaitForCommitted(3);
  Finish();
  EXPECT_TRUE(ended_.ok()) << ended_;
  EXPECT_THAT(server_.committed_, ElementsAre("a", "b", "c"));
  EXPECT_TRUE(server_.left_);
  ASSERT_EQ(server_.registrations_.size(), 1u);
  EXPECT_EQ(server_.registrations_[0].worker(), "tester");
}

TEST_F(WorkerTest, RegistrationCanBeWaitedFor) {
  Start();
  EXPECT_TRUE(worker_->WaitUntilRegistered(60));
  Finish();
  EXPECT_EQ(server_.registrations_.size(), 1u);
}

TEST_F(WorkerTest, ResultsAreHeldUntilAcknowledged) {
  server_.report_errors_ = {absl::UnavailableError("away"), absl::DeadlineExceededError("slow"),
                            absl::ResourceExhaustedError("no space")};
  server_.Queue({"a", "b"});
  Start();
  server_.WaitForCommitted(2);
  Finish();
  EXPECT_THAT(server_.committed_, ElementsAre("a", "b"));
  EXPECT_THAT(measured_, ElementsAre("a", "b")) << "measured once";
  EXPECT_GE(server_.report_calls_, 4);
}

TEST_F(WorkerTest, RegistersAgainWithWhatItHolds) {
  server_.report_errors_ = {absl::NotFoundError("unknown session: the server was restarted")};
  server_.Queue({"a", "b"});
  Start();
  server_.WaitForCommitted(2);
  Finish();
  EXPECT_THAT(server_.committed_, ElementsAre("a", "b"));
  ASSERT_EQ(server_.registrations_.size(), 2u);
  std::vector<std::string> held;
  for (const v1::LeaseId& lease : server_.registrations_[1].held()) held.push_back(lease.trial());
  EXPECT_THAT(held, UnorderedElementsAre("a", "b"));
}

TEST_F(WorkerTest, RevokedTrialIsNotMeasured) {
  server_.revoke_ = {"b"};
  server_.Queue({"a", "b"});
  Start();
  server_.WaitForCommitted(1);
  Finish();
  EXPECT_THAT(measured_, ElementsAre("a"));
  EXPECT_THAT(server_.committed_, ElementsAre("a"));
}

TEST_F(WorkerTest, StopFinishesTheCandidateInHandAndReturnsTheRest) {
  on_measure_ = [this](const std::string&) { worker_->Stop(); };
  server_.Queue({"a", "b"});
  Start();
  thread_.join();
  EXPECT_TRUE(ended_.ok());
  EXPECT_THAT(measured_, ElementsAre("a"));
  EXPECT_THAT(server_.committed_, ElementsAre("a"));
  EXPECT_TRUE(server_.left_);
}

TEST_F(WorkerTest, RefusedWorkerEndsWithTheReason) {
  server_.refuse_ = absl::PermissionDeniedError("the token is wrong");
  Start();
  thread_.join();
  EXPECT_TRUE(absl::IsPermissionDenied(ended_)) << ended_;
  EXPECT_THAT(measured_, IsEmpty());
}

TEST_F(WorkerTest, ServerThatIsAwayIsTriedAgain) {
  server_.report_errors_ = {absl::UnavailableError("away")};
  server_.Queue({"a"});
  Start();
  server_.WaitForCommitted(1);
  Finish();
  EXPECT_TRUE(ended_.ok()) << ended_;
}

}  // namespace
}  // namespace mycc
