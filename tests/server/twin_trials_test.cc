// Candidates that running jobs have in common are measured once. The jobs here are too different to leave
// whole tasks to each other: the later one asks for more trials. With one seed they propose the same
// candidates.
#include "server/twin_trials.h"

#include "db/shared_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::SizeIs;

class TwinTrialsTest : public ::testing::Test {
 protected:
  std::string Submit(uint32_t trials, int priority = 0) {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = MakeSpec({kTestWorkload}, trials, 1);
    request.set_priority(priority);
    const absl::StatusOr<v1::JobProgress> progress = server_.TrySubmit(request);
    EXPECT_TRUE(progress.ok()) << progress.status();
    return progress.ok() ? progress->job() : "";
  }
  int WorkOn() {
    int trials = 0;
    for (int quiet = 0; quiet < 3; ++quiet) {
      const int more = worker_.Work();
      trials += more;
      if (more > 0) quiet = 0;
      server_.Wait(0.1);
    }
    return trials;
  }
  // The number of records of each trace that is no final round's; the job's trials that are finished.
  std::map<std::string, int> Measured() {
    std::map<std::string, int> measured;
    for (const std::string& job : {first_, second_})
      for (const StoredRecord& record : server_.RecordsOf(job)) ++measured[record.record.trace()];
    return measured;
  }
  void ExpectOnce() {
    for (const auto& [trace, times] : Measured()) EXPECT_EQ(times, 1) << trace;
  }
  std::vector<std::string> TracesOf(const std::string& job) {
    std::vector<std::string> traces;
    const absl::StatusOr<std::vector<Trial>> trials = JobStore(&server_.log()).LoadTrials(job, 0);
    EXPECT_TRUE(trials.ok()) << trials.status();
    for (const Trial& trial : *trials) {
      EXPECT_TRUE(trial.result.has_value()) << trial.name;
      traces.push_back(trial.trace);
    }
    return traces;
  }

  FakeServer server_;
  FakeWorker worker_{&server_, "w"};
  std::string first_, second_;
};

TEST_F(TwinTrialsTest, InFlightOrRecordedTheyAreMeasuredOnce) {
  first_ = Submit(16);
  for (const v1::Assignment& assignment : worker_.Lease(3)) EXPECT_TRUE(worker_.Report(assignment).ok());
  const std::vector<v1::Assignment> held = worker_.Lease(2);
  second_ = Submit(20);
  EXPECT_EQ(server_.Progress(second_).trials(), 3) << "they were recorded before";
  for (const v1::Assignment& assignment : held) EXPECT_TRUE(worker_.Report(assignment).ok());
  EXPECT_EQ(server_.Progress(second_).trials(), 5) << "and these were in flight";
  WorkOn();
  ExpectOnce();
  EXPECT_THAT(Measured(), SizeIs(20));
  for (const std::string& job : {first_, second_})
    EXPECT_EQ(server_.Progress(job).state(), v1::JOB_STATE_DONE);
  EXPECT_THAT(TracesOf(second_), SizeIs(20));
  EXPECT_EQ(server_.Progress(first_).tasks(0).best_seconds(),
            server_.Progress(second_).tasks(0).best_seconds());
}

TEST_F(TwinTrialsTest, TheirJobSearchesAsIfItHadMeasuredThem) {
  second_ = Submit(20);
  WorkOn();
  const std::vector<std::string> alone = TracesOf(second_);
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string first = server.Submit(MakeSpec({kTestWorkload}, 16, 1)),
                    second = server.Submit(MakeSpec({kTestWorkload}, 20, 1));
  for (int i = 0; i < 10; ++i) {
    worker.Work();
    server.Wait(0.1);
  }
  std::vector<std::string> shared;
  const std::vector<Trial> trials = JobStore(&server.log()).LoadTrials(second, 0).value();
  for (const Trial& trial : trials) shared.push_back(trial.trace);
  EXPECT_EQ(shared, alone);
}

TEST_F(TwinTrialsTest, ACancelledLeaderFreesItsTwins) {
  first_ = Submit(16);
  second_ = Submit(20);
  ASSERT_TRUE(server_.Cancel(first_).ok());
  server_.Wait(0.1);
  EXPECT_EQ(WorkOn(), 20);
  EXPECT_EQ(server_.Progress(second_).state(), v1::JOB_STATE_DONE);
}

TEST_F(TwinTrialsTest, AFollowerThatEndsLeavesTheLeaderAlone) {
  first_ = Submit(16);
  second_ = Submit(20);
  ASSERT_TRUE(server_.Cancel(second_).ok());
  EXPECT_EQ(WorkOn(), 16);
  EXPECT_EQ(server_.Progress(first_).state(), v1::JOB_STATE_DONE);
}

TEST_F(TwinTrialsTest, OverARestart) {
  first_ = Submit(16);
  second_ = Submit(20);
  for (int i = 0; i < 4; ++i) {
    for (const v1::Assignment& assignment : worker_.Lease(2)) EXPECT_TRUE(worker_.Report(assignment).ok());
    worker_.Lease(1);
    server_.Restart();
    worker_.Register();
  }
  WorkOn();
  ExpectOnce();
  EXPECT_EQ(server_.Progress(second_).state(), v1::JOB_STATE_DONE);
}

TEST_F(TwinTrialsTest, TheMoreUrgentJobLeads) {
  first_ = Submit(16, -1);
  second_ = Submit(20, 1);
  const std::vector<v1::Assignment> held = worker_.Lease(2);
  ASSERT_THAT(held, SizeIs(2));
  EXPECT_EQ(held[0].lease().trial().substr(0, second_.size()), second_);
  for (const v1::Assignment& assignment : held) EXPECT_TRUE(worker_.Report(assignment).ok());
  EXPECT_EQ(server_.Progress(first_).trials(), 2) << "of less urgent work, they are its twins";
  WorkOn();
  ExpectOnce();
  EXPECT_EQ(server_.Progress(first_).state(), v1::JOB_STATE_DONE);
}

TEST_F(TwinTrialsTest, ALeaderThatIsGivenUpSaysNothingOfTheCandidate) {
  first_ = Submit(4);
  second_ = Submit(5);
  std::string given_up;
  for (int i = 0; i < 3; ++i) {
    const std::vector<v1::Assignment> held = worker_.Lease(1);
    ASSERT_THAT(held, SizeIs(1));
    given_up = held[0].lease().trial();
    v1::MeasureResult lost;
    lost.set_status(v1::MEASURE_STATUS_DEVICE_LOST);
    lost.set_error("it fell off the bus");
    EXPECT_TRUE(worker_.Report(held[0], lost).ok());
    worker_.Register();
  }
  WorkOn();
  const auto lost = server_.log().Find(given_up);
  ASSERT_TRUE(lost.ok()) << lost.status();
  EXPECT_EQ(lost->record.result().status(), v1::MEASURE_STATUS_DEVICE_LOST);
  EXPECT_THAT(TracesOf(second_), SizeIs(5));
  EXPECT_EQ(Measured().at(lost->record.trace()), 2) << "the other job tried it as well";
}

TEST_F(TwinTrialsTest, HaveNoRecordsOfTheirOwn) {
  first_ = Submit(4);
  second_ = Submit(5);
  WorkOn();
  const std::string trial = first_ + "/0/0/0", twin = second_ + "/0/0/0";
  EXPECT_EQ(RecordThatFinished(server_.log(), trial)->record.trial(), trial);
  EXPECT_EQ(RecordThatFinished(server_.log(), twin)->record.trial(), trial);
  EXPECT_THAT(server_.RecordsOf(second_), SizeIs(1)) << "the fifth is its own";
  EXPECT_EQ(FinishByRecordOf(&server_.log(), twin, trial).code(), absl::StatusCode::kFailedPrecondition)
      << "it is finished";
  EXPECT_TRUE(absl::IsNotFound(RecordThatFinished(server_.log(), first_ + "/0/9/0").status()));
}

// The log is full for a while: the twins are measured by themselves, or finished later.
TEST_F(TwinTrialsTest, AFullLogLosesNone) {
  first_ = Submit(4);
  second_ = Submit(5);
  const std::vector<v1::Assignment> held = worker_.Lease(2);
  for (const v1::Assignment& assignment : held) EXPECT_TRUE(worker_.Report(assignment).ok());
  server_.FailWrites(absl::UnavailableError("the disk is full"));
  server_.Wait(1);
  server_.FailWrites(absl::OkStatus());
  WorkOn();
  for (const std::string& job : {first_, second_})
    EXPECT_EQ(server_.Progress(job).state(), v1::JOB_STATE_DONE) << job;
}

}  // namespace
}  // namespace mycc
