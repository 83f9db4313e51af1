// The worker against a simulated server: registering, reporting, stopping, errors.
#include "worker/worker.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/fake_link.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class WorkerTest : public ::testing::Test {
 protected:
  ~WorkerTest() override { Finish(); }

  void Start() {
    WorkerOptions options;
    options.name = "tester";
    options.instance = "this process";
    options.replaces = "the one before";
    options.role = v1::WORKER_ROLE_MEASURE;
    options.first_retry_seconds = 0.001;
    options.last_retry_seconds = last_retry_seconds_;
    options.now = [this] { return Deadline(std::chrono::duration_cast<Deadline::duration>(now_.load())); };
    options.log = [this](const Event& event) {
      const MutexLock lock(&log_mutex_);
      if (!event.text.empty()) log_.push_back(event.text);
    };
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
        if (assignment.lease().trial() == damaged_) result.set_code_digest("\xff");
        done(assignment, {result});
      }
    };
    device.trouble = [this] { return trouble_; };
    if (can_measure_constants_) {
      device.measure_constants =
          [this](const std::function<bool()>& gives_up) -> absl::StatusOr<v1::DeviceConstants> {
        measured_.push_back("constants");
        while (waits_for_stop_ && !gives_up()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (!constants_error_.ok()) return constants_error_;
        v1::DeviceConstants constants;
        constants.set_version(1);
        (*constants.mutable_values())["clock_cycles_per_second"] = 3e9;
        return constants;
      };
    }
    worker_ = std::make_unique<Worker>(options, &server_, std::vector<WorkerDevice>{device});
    thread_ = std::thread([this] { ended_ = worker_->Run(); });
  }
  void Finish() {
    if (!thread_.joinable()) return;
    worker_->Stop();
    thread_.join();
  }

  int TimesLogged(const std::string& part) {
    const MutexLock lock(&log_mutex_);
    return static_cast<int>(std::ranges::count_if(
        log_, [&part](const std::string& line) { return line.find(part) != std::string::npos; }));
  }

  FakeLink server_;
  double last_retry_seconds_ = 0.001;
  std::atomic<std::chrono::duration<double>> now_ = std::chrono::duration<double>(1000);
  Mutex log_mutex_;
  std::vector<std::string> log_;
  std::string damaged_, trouble_;
  bool can_measure_constants_ = true, waits_for_stop_ = false;
  absl::Status constants_error_;
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
  EXPECT_EQ(server_.registrations_[0].instance(), "this process");
  EXPECT_EQ(server_.registrations_[0].replaces(), "the one before");
  EXPECT_EQ(server_.registrations_[0].role(), v1::WORKER_ROLE_MEASURE);
  EXPECT_TRUE(server_.registrations_[0].names_what_it_holds());
  EXPECT_EQ(server_.registrations_[0].role(), v1::WORKER_ROLE_MEASURE);
}

// The lease of `b` has run out meanwhile, and another worker has it.
TEST_F(WorkerTest, AfterAStandstillItAsksWhatIsStillWanted) {
  server_.Queue({"a", "b"});
  server_.revoke_later_ = {"b"};
  on_measure_ = [this](const std::string&) { now_ = now_.load() + std::chrono::duration<double>(60); };
  Start();
  server_.WaitForCommitted(1);
  Finish();
  EXPECT_THAT(measured_, ElementsAre("a"));
  EXPECT_THAT(server_.committed_, ElementsAre("a"));
}

// A server that was away for long has given nothing to others, and asks who is there when it is back.
TEST_F(WorkerTest, AfterAStandstillAServerThatIsAwayIsNotWaitedFor) {
  server_.Queue({"a", "b"});
  server_.heartbeat_errors_ = {absl::UnavailableError("away")};
  on_measure_ = [this](const std::string&) { now_ = now_.load() + std::chrono::duration<double>(60); };
  Start();
  server_.WaitForCommitted(2);
  Finish();
  EXPECT_THAT(measured_, ElementsAre("a", "b"));
}

TEST_F(WorkerTest, RegistrationCanBeWaitedFor) {
  Start();
  EXPECT_TRUE(worker_->WaitUntilReady(60));
  Finish();
  EXPECT_EQ(server_.registrations_.size(), 1u);
}

TEST_F(WorkerTest, ConstantsThatAreAskedForAreMeasuredBeforeAnyTrialAndTold) {
  server_.ask_for_ = {"cpu", "cuda:0"};
  server_.Queue({"a"});
  Start();
  EXPECT_TRUE(worker_->WaitUntilReady(60));
  server_.WaitForCommitted(1);
  Finish();
  EXPECT_THAT(measured_, ElementsAre("constants", "a"));
  std::vector<v1::MeasuredConstants> told;
  for (const v1::HeartbeatRequest& beat : server_.heartbeats_)
    told.insert(told.end(), beat.constants().begin(), beat.constants().end());
  ASSERT_EQ(told.size(), 1u) << "once";
  EXPECT_EQ(told[0].device(), "cpu");
  EXPECT_EQ(told[0].constants().values().at("clock_cycles_per_second"), 3e9);
  EXPECT_EQ(TimesLogged("cpu: its constants are measured"), 1);
}

TEST_F(WorkerTest, NobodyMeasuresConstantsUnasked) {
  server_.Queue({"a"});
  Start();
  server_.WaitForCommitted(1);
  Finish();
  EXPECT_THAT(measured_, ElementsAre("a"));
}

TEST_F(WorkerTest, WhoCannotMeasureConstantsWorksWithout) {
  server_.ask_for_ = {"cpu"};
  can_measure_constants_ = false;
  server_.Queue({"a"});
  Start();
  EXPECT_TRUE(worker_->WaitUntilReady(60));
  server_.WaitForCommitted(1);
  Finish();
  EXPECT_THAT(measured_, ElementsAre("a"));
}

TEST_F(WorkerTest, ConstantsThatCannotBeMeasuredCostNothingElse) {
  server_.ask_for_ = {"cpu"};
  constants_error_ = absl::UnavailableError("no memory");
  server_.Queue({"a"});
  Start();
  EXPECT_TRUE(worker_->WaitUntilReady(60));
  server_.WaitForCommitted(1);
  Finish();
  EXPECT_THAT(server_.committed_, ElementsAre("a"));
  EXPECT_EQ(TimesLogged("cpu: its constants cannot be measured: no memory"), 1);
}

TEST_F(WorkerTest, ConstantsThatTheServerMissedAreToldAgainAndNotMeasuredAgain) {
  server_.ask_for_ = {"cpu"};
  server_.heartbeat_errors_ = {absl::NotFoundError("unknown session: the server was restarted")};
  Start();
  EXPECT_TRUE(worker_->WaitUntilReady(60));
  Finish();
  EXPECT_THAT(measured_, ElementsAre("constants"));
  EXPECT_EQ(server_.registrations_.size(), 2u);
  ASSERT_GE(server_.heartbeats_.size(), 2u);
  EXPECT_EQ(server_.heartbeats_.back().constants_size(), 1);
}

TEST_F(WorkerTest, StoppingEndsTheMeasuringOfConstants) {
  server_.ask_for_ = {"cpu"};
  waits_for_stop_ = true;
  constants_error_ = absl::CancelledError("the worker is stopping");
  Start();
  EXPECT_FALSE(worker_->WaitUntilReady(0.05));
  Finish();
  EXPECT_TRUE(ended_.ok()) << ended_;
}

TEST_F(WorkerTest, NoErrorOfACallCostsAResult) {
  server_.report_errors_ = {
      absl::UnavailableError("away"),           absl::DeadlineExceededError("slow"),
      absl::ResourceExhaustedError("no space"), absl::PermissionDeniedError("read-only"),
      absl::DataLossError("damaged"),           absl::InvalidArgumentError("odd"),
      absl::FailedPreconditionError("busy")};
  server_.Queue({"a", "b"});
  Start();
  server_.WaitForCommitted(2);
  Finish();
  EXPECT_THAT(server_.committed_, ElementsAre("a", "b"));
  EXPECT_THAT(measured_, ElementsAre("a", "b")) << "measured once";
  EXPECT_GE(server_.reported_.size(), 4u);
}

TEST_F(WorkerTest, RegistersAgainWithWhatItHolds) {
  server_.report_errors_ = {absl::NotFoundError("unknown session: the server was restarted")};
  server_.Queue({"a", "b"});
  Start();
  server_.WaitForCommitted(2);
  Finish();
  EXPECT_THAT(server_.committed_, ElementsAre("a", "b"));
  ASSERT_EQ(server_.registrations_.size(), 2u);
  std::vector<std::string> tickets;
  for (const v1::LeaseId& lease : server_.registrations_[1].held()) tickets.push_back(lease.ticket());
  EXPECT_THAT(tickets, UnorderedElementsAre("ticket of a", "ticket of b"));
}

TEST_F(WorkerTest, AServerThatIsThereAgainIsToldAtOnceWhoThisIs) {
  last_retry_seconds_ = 60;
  server_.report_errors_.assign(10, absl::UnavailableError("away"));  // pauses of 1 ms to 512 ms
  server_.report_errors_.push_back(absl::NotFoundError("unknown session: the server was restarted"));
  server_.Queue({"a"});
  Start();
  server_.WaitForReports(11);
  const Deadline next_pause = After(0.5);
  server_.WaitForCommitted(1);
  EXPECT_LT(std::chrono::steady_clock::now(), next_pause);
}

TEST_F(WorkerTest, AHeartbeatThatFailedIsTriedAgainAtOnceAndHoldsUpNoResult) {
  server_.heartbeat_seconds_ = 0.5;
  server_.heartbeat_errors_.assign(20, absl::UnavailableError("away"));
  on_measure_ = [this](const std::string&) { server_.WaitForHeartbeats(4); };
  server_.Queue({"a"});
  const Deadline four_beats = After(4 * 0.5);
  Start();
  server_.WaitForCommitted(1);
  EXPECT_LT(std::chrono::steady_clock::now(), four_beats);
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

TEST_F(WorkerTest, ALeaseThatItNeverHeardOfIsNotNamed) {
  server_.lease_errors_ = {absl::UnavailableError("the line was cut")};
  server_.heartbeat_seconds_ = 0.001;
  on_measure_ = [this](const std::string& trial) {
    if (trial == "c") server_.WaitForHeartbeats(2);
  };
  server_.Queue({"a", "b", "c"});  // the answer with the first two is lost
  Start();
  server_.WaitForCommitted(1);
  Finish();
  EXPECT_THAT(measured_, ElementsAre("c"));
  EXPECT_TRUE(server_.WasNamed("c"));
  EXPECT_FALSE(server_.WasNamed("a"));
  EXPECT_FALSE(server_.WasNamed("b"));
}

TEST_F(WorkerTest, MessagesNameWhatIsHeldWithItsTicket) {
  server_.heartbeat_seconds_ = 0.001;
  on_measure_ = [this](const std::string&) { server_.WaitForHeartbeats(2); };
  server_.Queue({"a"});
  Start();
  server_.WaitForCommitted(1);
  server_.WaitForHeartbeats(2);
  Finish();
  std::set<std::string> tickets;
  for (const v1::HeartbeatRequest& heartbeat : server_.heartbeats_) {
    for (const v1::LeaseId& lease : heartbeat.held()) tickets.insert(lease.ticket());
  }
  EXPECT_THAT(tickets, ElementsAre("ticket of a"));
  EXPECT_THAT(server_.heartbeats_.back().held(), IsEmpty()) << "it is over";
}

TEST_F(WorkerTest, WhatAHeartbeatRevokesIsDroppedAndNamedNoMore) {
  server_.heartbeat_seconds_ = 0.001;
  server_.revoke_later_ = {"b"};
  on_measure_ = [this](const std::string&) { server_.WaitForHeartbeats(3); };
  server_.Queue({"a", "b", "c"});
  Start();
  server_.WaitForCommitted(2);
  server_.WaitForHeartbeats(2);
  Finish();
  EXPECT_THAT(measured_, ElementsAre("a", "c"));
  EXPECT_THAT(server_.committed_, ElementsAre("a", "c"));
  EXPECT_THAT(server_.heartbeats_.back().held(), IsEmpty());
}

TEST_F(WorkerTest, OnlyItsOwnAnswerEndsAReport) {
  using Answer = v1::ReportAnswer;
  server_.answers_["b"] = {Answer::NOT_NOW, Answer::UNSPECIFIED, Answer::NOT_NOW};
  server_.Queue({"a", "b"});
  Start();
  server_.WaitForCommitted(2);
  Finish();
  EXPECT_THAT(server_.committed_, ElementsAre("a", "b"));
  EXPECT_EQ(server_.TimesReported("a"), 1);
  EXPECT_EQ(server_.TimesReported("b"), 4);
  EXPECT_THAT(measured_, ElementsAre("a", "b")) << "measured once";
}

TEST_F(WorkerTest, RefusedAndIgnoredReportsAreOver) {
  server_.answers_ = {{"a", {v1::ReportAnswer::REFUSED}},
                      {"b", {v1::ReportAnswer::IGNORED}},
                      {"c", {v1::ReportAnswer::REFUSED}}};
  server_.Queue({"a", "b", "c", "d"});
  Start();
  server_.WaitForCommitted(1);
  Finish();
  EXPECT_THAT(server_.committed_, ElementsAre("d"));
  for (const char* trial : {"a", "b", "c"}) EXPECT_EQ(server_.TimesReported(trial), 1) << trial;
  EXPECT_EQ(TimesLogged("the server refused a result: the reason"), 1);
}

TEST_F(WorkerTest, ADamagedResultIsTheWorkersFailureAndCostsNoOther) {
  damaged_ = "a";
  server_.Queue({"a", "b"});
  Start();
  server_.WaitForCommitted(2);
  Finish();
  EXPECT_EQ(server_.results_["a"].status(), v1::MEASURE_STATUS_WORKER_UNFIT);
  EXPECT_THAT(server_.results_["a"].error(), HasSubstr("not UTF-8"));
  EXPECT_EQ(server_.results_["b"].status(), v1::MEASURE_STATUS_OK);
}

TEST_F(WorkerTest, AReportThatNoMessageCanCarryHoldsUpNoOther) {
  server_.SetTooLarge("a");
  server_.Queue({"a", "b", "c", "d"});
  Start();
  server_.WaitForCommitted(3);
  worker_->Stop();
  server_.SetTooLarge("");
  Finish();
  EXPECT_THAT(server_.committed_, UnorderedElementsAre("a", "b", "c", "d"));
}

TEST_F(WorkerTest, ATroubleIsToldOnce) {
  const absl::Status full = absl::ResourceExhaustedError("no space left");
  server_.report_errors_ = {full, full, absl::UnavailableError("away"), full, full};
  server_.Queue({"a"});
  Start();
  server_.WaitForCommitted(1);
  Finish();
  EXPECT_EQ(TimesLogged("no space left"), 1);
  EXPECT_EQ(TimesLogged("away"), 1);
}

TEST_F(WorkerTest, TroublesOfItsDevicesAreToldToTheServer) {
  trouble_ = "somebody holds it";
  server_.heartbeat_seconds_ = 0.001;
  Start();
  server_.WaitForHeartbeats(3);
  Finish();
  ASSERT_EQ(server_.heartbeats_[0].troubles_size(), 1);
  EXPECT_EQ(server_.heartbeats_[0].troubles(0).device(), "cpu");
  EXPECT_EQ(server_.heartbeats_[0].troubles(0).text(), "somebody holds it");
  EXPECT_EQ(TimesLogged("cpu stands still: somebody holds it"), 1);
}

TEST_F(WorkerTest, RefusedWorkerEndsWithTheReason) {
  server_.register_errors_ = {absl::PermissionDeniedError("the token is wrong")};
  Start();
  thread_.join();
  EXPECT_TRUE(absl::IsPermissionDenied(ended_)) << ended_;
  EXPECT_THAT(measured_, IsEmpty());
}

TEST_F(WorkerTest, OnceRegisteredItOutlivesEveryRefusal) {
  server_.register_errors_ = {absl::OkStatus(), absl::PermissionDeniedError("the token was changed"),
                              absl::InvalidArgumentError("the server is older")};
  server_.report_errors_ = {absl::NotFoundError("unknown session: the server was restarted")};
  server_.Queue({"a"});
  Start();
  server_.WaitForCommitted(1);
  Finish();
  EXPECT_TRUE(ended_.ok()) << ended_;
  EXPECT_EQ(server_.registrations_.size(), 4u);
}

TEST_F(WorkerTest, WaitsForANameThatAnotherHas) {
  const absl::Status taken = absl::AlreadyExistsError("the name tester belongs to a worker on h1");
  server_.register_errors_ = {taken, taken, taken};
  server_.Queue({"a"});
  Start();
  server_.WaitForCommitted(1);
  Finish();
  EXPECT_TRUE(ended_.ok()) << ended_;
  EXPECT_EQ(TimesLogged("the name tester belongs to a worker on h1"), 1);
}

TEST_F(WorkerTest, ServerThatIsRestartedWhileAWorkerGoesStillGetsItsResults) {
  on_measure_ = [this](const std::string&) { worker_->Stop(); };
  server_.report_errors_ = {absl::UnavailableError("away"), absl::NotFoundError("unknown session")};
  server_.Queue({"a"});
  Start();
  thread_.join();
  EXPECT_THAT(server_.committed_, ElementsAre("a"));
  EXPECT_TRUE(server_.left_);
}

}  // namespace
}  // namespace mycc
