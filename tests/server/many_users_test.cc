// Many users of one farm: owners, priorities, deadlines, quotas, and jobs that run only when the farm is
// idle.
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job_plan.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

v1::SubmitJobRequest Request(const std::string& owner, const v1::JobSpec& spec,
                             const std::string& submission = "") {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = spec;
  request.set_owner(owner);
  request.set_submission(submission);
  return request;
}
// Each seed is another search, which leaves nothing to the others.
std::string SubmitFor(FakeServer* server, const std::string& owner, uint64_t seed, uint32_t trials = 64,
                      int priority = 0) {
  v1::SubmitJobRequest request = Request(owner, MakeSpec({kTestWorkload}, trials, seed));
  request.mutable_spec()->set_fresh(true);
  request.set_priority(priority);
  const absl::StatusOr<v1::JobProgress> progress = server->TrySubmit(request);
  EXPECT_TRUE(progress.ok()) << progress.status();
  return progress.ok() ? progress->job() : "";
}

std::string JobOf(const v1::Assignment& assignment) {
  return assignment.lease().trial().substr(0, assignment.lease().trial().find('/'));
}
absl::Status ReportAfter(FakeWorker* worker, const v1::Assignment& assignment, double seconds) {
  v1::MeasureResult result = FakeResult(assignment);
  result.mutable_timing()->set_run_seconds(seconds);
  return worker->Report(assignment, result);
}
// The job of the next trial, which takes a second.
std::string WorkOne(FakeServer* server, FakeWorker* worker) {
  const std::vector<v1::Assignment> assignments = worker->Lease(1);
  if (assignments.empty()) return "";
  server->Wait(1);
  EXPECT_TRUE(ReportAfter(worker, assignments[0], 1).ok());
  return JobOf(assignments[0]);
}

class QuotaTest : public ::testing::Test {
 protected:
  void Write(const std::string& text) {
    std::ofstream(path_, std::ios::trunc) << text;
    // Two writes within the resolution of a file's time differ in length or not at all.
    std::filesystem::last_write_time(
        path_, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(++writes_));
  }
  CoordinatorOptions Options() {
    CoordinatorOptions options = FakeServer::DefaultOptions();
    options.jobs.owners.quotas_file = path_;
    options.jobs.owners.log = [this](const std::string& line) { lines_.push_back(line); };
    return options;
  }

  const TestFolder folder_ = TestFolder::InMemory();
  const std::string path_ = folder_.Path("quotas.json");
  int writes_ = 0;
  std::vector<std::string> lines_;
};

TEST(OwnerTest, TheFirstSubmitterOwnsTheJob) {
  FakeServer server;
  const v1::JobSpec spec = MakeSpec({kTestWorkload}, 8);
  const std::string job = server.TrySubmit(Request("ann", spec, "mine"))->job();
  EXPECT_EQ(server.TrySubmit(Request("bob", spec, "mine"))->job(), job);
  EXPECT_EQ(server.Progress(job).owner(), "ann");
  server.Restart();
  EXPECT_EQ(server.Progress(job).owner(), "ann");
  EXPECT_EQ(server.List().at(0).owner(), "ann");
  ASSERT_TRUE(server.Cancel(job).ok());
  EXPECT_EQ(server.List().at(0).owner(), "ann") << "of one that has ended";
}

TEST(OwnerTest, EachGetsHalfOfTheDevicesTime) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  std::map<std::string, std::string> owner_of;
  for (uint64_t seed = 1; seed <= 10; ++seed) owner_of[SubmitFor(&server, "ann", seed)] = "ann";
  owner_of[SubmitFor(&server, "bob", 11)] = "bob";
  std::map<std::string, int> trials;
  for (int i = 0; i < 80; ++i) ++trials[owner_of.at(WorkOne(&server, &worker))];
  EXPECT_NEAR(trials["bob"], 40, 4);
}

TEST(OwnerTest, UseIsKeptOverARestart) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  SubmitFor(&server, "ann", 1);
  for (int i = 0; i < 5; ++i) WorkOne(&server, &worker);
  server.Wait(11);
  server.Restart();
  const v1::ListOwnersResponse owners = server->jobs().ListOwners();
  ASSERT_EQ(owners.owners_size(), 1);
  EXPECT_EQ(owners.owners(0).owner(), "ann");
  EXPECT_EQ(owners.owners(0).trials(), 5);
  EXPECT_EQ(owners.owners(0).device_seconds(), 5);
  EXPECT_EQ(owners.owners(0).running_jobs(), 1);
}

TEST(PriorityTest, HigherOnesFirstAndChangedWhileTheyRun) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string low = SubmitFor(&server, "ann", 1), high = SubmitFor(&server, "bob", 2, 64, 3);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(WorkOne(&server, &worker), high);
  v1::UpdateJobRequest request;
  request.set_job(low);
  request.set_priority(5);
  const auto updated = server.Update(request);
  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_EQ(updated->priority(), 5);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(WorkOne(&server, &worker), low);
  server.Restart();
  EXPECT_EQ(server.Progress(low).priority(), 5);
  worker.RegisterAgain();
  EXPECT_EQ(WorkOne(&server, &worker), low);
}

TEST(PriorityTest, OutOfRangeIsRefused) {
  FakeServer server;
  v1::SubmitJobRequest request = Request("ann", MakeSpec({kTestWorkload}, 4));
  request.set_priority(11);
  EXPECT_THAT(std::string(server.TrySubmit(request).status().message()), HasSubstr("expected -10 to 10"));
}

TEST(PriorityTest, AJobThatHasEndedHasNoTerms) {
  FakeServer server;
  const std::string job = SubmitFor(&server, "ann", 1);
  ASSERT_TRUE(server.Cancel(job).ok());
  v1::UpdateJobRequest request;
  request.set_job(job);
  request.set_priority(1);
  EXPECT_THAT(std::string(server.Update(request).status().message()), HasSubstr("has ended"));
}

TEST(PriorityTest, TheNextTurnIsOfTheHighestPriority) {
  CoordinatorOptions options = FakeServer::DefaultOptions();
  options.jobs.admission.max_running = 1;
  FakeServer server(options);
  const std::string first = SubmitFor(&server, "ann", 1), low = SubmitFor(&server, "ann", 2),
                    high = SubmitFor(&server, "ann", 3, 64, 1);
  ASSERT_TRUE(server.Cancel(first).ok());
  EXPECT_EQ(server.Progress(high).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(server.Progress(low).state(), v1::JOB_STATE_WAITING);
}

class DeadlineTest : public ::testing::Test {
 protected:
  std::string Submit(double seconds) {
    v1::SubmitJobRequest request = Request("ann", MakeSpec({kTestWorkload}, 0));
    request.set_deadline_unix_micros(server_.time().UnixMicros() + static_cast<int64_t>(seconds * 1e6));
    const absl::StatusOr<v1::JobProgress> progress = server_.TrySubmit(request);
    EXPECT_TRUE(progress.ok()) << progress.status();
    return progress.ok() ? progress->job() : "";
  }

  void Pass(double seconds) {
    for (double passed = 0; passed < seconds; passed += 1) {
      server_.Wait(1);
      EXPECT_TRUE(worker_.Beat().ok());
    }
  }

  FakeServer server_;
  FakeWorker worker_{&server_, "w"};
};

TEST_F(DeadlineTest, EndsTheJobWithItsBestSoFar) {
  const std::string job = Submit(100);
  for (int i = 0; i < 6; ++i) WorkOne(&server_, &worker_);
  Pass(90);
  EXPECT_EQ(server_.Progress(job).message(), "");
  Pass(6);
  EXPECT_THAT(server_.Progress(job).message(), HasSubstr("its deadline is reached"));
  worker_.Work();
  const v1::JobProgress progress = server_.Progress(job);
  EXPECT_EQ(progress.state(), v1::JOB_STATE_DONE);
  EXPECT_GT(progress.tasks(0).finalists(), 1u);
}

TEST(SearchDeadlineTest, TheLastSecondsAreOfTheFinalRounds) {
  const JobTerms terms{.deadline_unix_micros = 100000000};
  EXPECT_EQ(SearchDeadline(terms, 0, 3), 94000000);
  EXPECT_EQ(SearchDeadline(terms, 0, 1000), 75000000) << "a quarter of the time at most";
}

TEST_F(DeadlineTest, OutlivesARestart) {
  const std::string job = Submit(100);
  WorkOne(&server_, &worker_);
  server_.Restart();
  EXPECT_EQ(server_.Progress(job).state(), v1::JOB_STATE_RUNNING);
  server_.Wait(120);
  server_.Wait(10);
  EXPECT_THAT(server_.Progress(job).message(), HasSubstr("its deadline is reached"));
}

TEST_F(DeadlineTest, AClockThatJumpsForAMomentEndsNothing) {
  const std::string job = Submit(1000);
  server_.Wait(1);
  server_.time().JumpWall(365 * 86400.0);
  for (int i = 0; i < 30; ++i) server_.Wait(1);
  server_.time().JumpWall(-365 * 86400.0);
  for (int i = 0; i < 100; ++i) server_.Wait(1);
  EXPECT_EQ(server_.Progress(job).state(), v1::JOB_STATE_RUNNING);
}

TEST_F(DeadlineTest, AClockThatIsPutRightCounts) {
  const std::string job = Submit(1000);
  server_.Wait(1);
  server_.time().JumpWall(2000);
  for (int i = 0; i < 70; ++i) server_.Wait(1);
  EXPECT_THAT(server_.Progress(job).message(), HasSubstr("its deadline is reached"));
}

TEST_F(DeadlineTest, OneThatIsOverIsRefused) {
  v1::SubmitJobRequest request = Request("ann", MakeSpec({kTestWorkload}, 4));
  request.set_deadline_unix_micros(server_.time().UnixMicros() - 1);
  EXPECT_THAT(std::string(server_.TrySubmit(request).status().message()), HasSubstr("the deadline is over"));
}

TEST(WaitingDeadlineTest, AJobThatNeverHadItsTurnEndsToo) {
  CoordinatorOptions options = FakeServer::DefaultOptions();
  options.jobs.admission.max_running = 1;
  FakeServer server(options);
  SubmitFor(&server, "ann", 1);
  v1::SubmitJobRequest request = Request("bob", MakeSpec({kTestWorkload}, 4, 2));
  request.set_deadline_unix_micros(server.time().UnixMicros() + 50000000);
  const std::string job = server.TrySubmit(request)->job();
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_WAITING);
  server.Wait(60);
  server.Wait(10);
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
  EXPECT_THAT(server.Progress(job).message(), HasSubstr("its deadline is reached"));
}

TEST_F(QuotaTest, RunningJobsWaitForTheirTurn) {
  Write(R"({"default": {"running_jobs": 1}})");
  FakeServer server(Options());
  const std::string first = SubmitFor(&server, "ann", 1), second = SubmitFor(&server, "ann", 2),
                    other = SubmitFor(&server, "bob", 3);
  EXPECT_EQ(server.Progress(other).state(), v1::JOB_STATE_RUNNING) << "nobody else waits for that";
  EXPECT_EQ(server.Progress(second).state(), v1::JOB_STATE_WAITING);
  EXPECT_THAT(server.Progress(second).message(), HasSubstr("the quota running_jobs is 1"));
  ASSERT_TRUE(server.Cancel(first).ok());
  EXPECT_EQ(server.Progress(second).state(), v1::JOB_STATE_RUNNING);
}

TEST_F(QuotaTest, WaitingJobsAreRefusedInWords) {
  Write(R"({"default": {"running_jobs": 1, "waiting_jobs": 1}})");
  FakeServer server(Options());
  SubmitFor(&server, "ann", 1);
  SubmitFor(&server, "ann", 2);
  const auto refused = server.TrySubmit(Request("ann", MakeSpec({kTestWorkload}, 4, 3)));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("1 jobs of ann are waiting for their turn: the quota waiting_jobs is 1; it is free"));
  EXPECT_TRUE(server.TrySubmit(Request("bob", MakeSpec({kTestWorkload}, 4, 3))).ok());
}

TEST_F(QuotaTest, TheHighestPriorityIsTheOwners) {
  Write(R"({"default": {"highest_priority": 0}, "owners": {"ann": {"highest_priority": 5}}})");
  FakeServer server(Options());
  SubmitFor(&server, "ann", 1, 4, 5);
  v1::SubmitJobRequest request = Request("bob", MakeSpec({kTestWorkload}, 4, 2));
  request.set_priority(1);
  EXPECT_THAT(std::string(server.TrySubmit(request).status().message()),
              HasSubstr("the priority 1 is above the quota highest_priority of bob, which is 0"));
}

TEST_F(QuotaTest, AJobOverItsDeviceTimeWaitsAndGoesOn) {
  Write(R"({"default": {"device_seconds_per_day": 3}})");
  FakeServer server(Options());
  FakeWorker worker(&server, "w");
  const std::string job = SubmitFor(&server, "ann", 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(WorkOne(&server, &worker), job);
  server.Wait(1);
  EXPECT_THAT(worker.Lease(1), IsEmpty());
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_RUNNING);
  EXPECT_THAT(server.Progress(job).message(), HasSubstr("the quota device_seconds_per_day"));
  EXPECT_THAT(server.Progress(job).message(), HasSubstr("more are free at 1970-01-02 00:00 UTC"));
  server.time().Advance(24 * 3600);
  server.Wait(61);
  server.Wait(1);
  worker.Register();
  EXPECT_EQ(WorkOne(&server, &worker), job);
}

TEST_F(QuotaTest, AreReadAgainWhenTheyChange) {
  Write(R"({"default": {"trials_per_day": 2}})");
  FakeServer server(Options());
  FakeWorker worker(&server, "w");
  const std::string job = SubmitFor(&server, "ann", 1);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(WorkOne(&server, &worker), job);
  server.Wait(1);
  EXPECT_THAT(worker.Lease(1), IsEmpty());
  Write("{\"default\": ");
  server.Wait(1.5);
  ASSERT_THAT(lines_, SizeIs(1)) << "once for each change";
  EXPECT_THAT(lines_[0], HasSubstr("the quotas stay as they were"));
  EXPECT_THAT(worker.Lease(1), IsEmpty());
  Write(R"({"default": {"trials_per_day": 2}, "owners": {"ann": {"trials_per_day": null}}})");
  server.Wait(1.5);
  EXPECT_EQ(WorkOne(&server, &worker), job);
}

TEST_F(QuotaTest, AWrongFileNamesTheKey) {
  for (const auto& [text, words] : std::map<std::string, std::string>{
           {R"({"defaults": {}})", "unknown key; expected default or owners"},
           {R"({"default": {"jobs": 3}})", "\"jobs\"; expected running_jobs, waiting_jobs"},
           {R"({"owners": {"ann": {"running_jobs": "two"}}})", "owners.ann"},
           {R"({"default": {"trials_per_day": 0}})", "not above 0"},
           {R"({"default": {"highest_priority": 40}})", "expected -10 to 10"},
           {"[]", "no JSON object"}}) {
    EXPECT_THAT(std::string(Quotas::Parse(text).status().message()), HasSubstr(words)) << text;
  }
}

TEST(OnlyWhenIdleTest, WaitsForAllOtherWorkAndPausesForIt) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  v1::JobSpec spec = MakeSpec({kOtherWorkload}, 16);
  spec.set_only_when_idle(true);
  const std::string idle = server.TrySubmit(Request("ann", spec))->job();
  std::vector<v1::Assignment> held = worker.Lease(8);
  ASSERT_THAT(held, SizeIs(2)) << "no more at a time, so that the device is soon free";
  EXPECT_EQ(JobOf(held[0]), idle);
  EXPECT_THAT(worker.Lease(8), IsEmpty());
  const std::string other = SubmitFor(&server, "bob", 1, 8, -10);
  for (const v1::Assignment& assignment : held) EXPECT_TRUE(ReportAfter(&worker, assignment, 1).ok());
  for (int i = 0; i < 8; ++i) EXPECT_EQ(WorkOne(&server, &worker), other);
  EXPECT_EQ(server.Progress(idle).trials(), 2);
  worker.Work();
  EXPECT_EQ(server.Progress(idle).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(server.Progress(other).state(), v1::JOB_STATE_DONE);
}

}  // namespace
}  // namespace mycc
