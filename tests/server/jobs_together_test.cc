// Jobs that meet: one leaves its work to another whose terms, limits or turn are not its own.
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kOtherTarget[] = "v1 cpu mcpu=znver4 l1d=32K l2=1M threads=2";

struct Terms {
  std::string owner = "ann";
  int priority = 0;
  bool only_when_idle = false;
  double deadline_seconds = 0;  // from now; 0: none
};

class JobsTogetherTest : public ::testing::Test {
 protected:
  explicit JobsTogetherTest(CoordinatorOptions options = FakeServer::DefaultOptions())
      : server_(std::move(options)) {}

  std::string Submit(v1::JobSpec spec, const Terms& terms = {}) {
    v1::SubmitJobRequest request;
    spec.set_only_when_idle(terms.only_when_idle);
    *request.mutable_spec() = std::move(spec);
    request.set_owner(terms.owner);
    request.set_priority(terms.priority);
    if (terms.deadline_seconds > 0) {
      request.set_deadline_unix_micros(server_.time().UnixMicros() +
                                       static_cast<int64_t>(1e6 * terms.deadline_seconds));
    }
    const absl::StatusOr<v1::JobProgress> progress = server_.TrySubmit(request);
    EXPECT_TRUE(progress.ok()) << progress.status();
    return progress.ok() ? progress->job() : "";
  }
  void SetPriority(const std::string& job, int priority) {
    v1::UpdateJobRequest request;
    request.set_job(job);
    request.set_priority(priority);
    EXPECT_TRUE(server_.Update(request).ok());
  }
  void Measure(int trials) {
    for (int i = 0; i < trials; ++i)
      for (const v1::Assignment& assignment : worker_.Lease(1)) EXPECT_TRUE(worker_.Report(assignment).ok());
  }
  void WorkOn() {
    for (int quiet = 0; quiet < 3; ++quiet) {
      if (worker_.Work() > 0) quiet = 0;
      server_.Wait(0.1);
    }
  }
  static std::string JobOf(const v1::Assignment& assignment) {
    return assignment.lease().trial().substr(0, assignment.lease().trial().find('/'));
  }
  bool Follows(const std::string& job) {
    return absl::StrContains(server_.Progress(job).message(), "measured by job");
  }

  FakeServer server_;
  FakeWorker worker_{&server_, "w"};
};

// The higher number of a job that runs only when the farm is idle makes it no more urgent than the other.
TEST_F(JobsTogetherTest, WorkThatIsNotOnlyForIdleDevicesLeadsInEachTurn) {
  Submit(MakeSpec({kTestWorkload}, 16), {.priority = 5, .only_when_idle = true});
  const std::string other = Submit(MakeSpec({kTestWorkload}, 17));
  for (int turn = 0; turn < 4; ++turn) {
    server_.Wait(0.1);
    const std::vector<v1::Assignment> leased = worker_.Lease(3);
    ASSERT_THAT(leased, SizeIs(3)) << "turn " << turn;
    for (const v1::Assignment& assignment : leased) {
      EXPECT_EQ(JobOf(assignment), other) << "turn " << turn;
      EXPECT_TRUE(worker_.Report(assignment).ok());
    }
  }
}

TEST_F(JobsTogetherTest, AJobThatIsAskedForAfreshMeasuresEvenWhatMoreUrgentOnesMeasure) {
  v1::JobSpec spec = MakeSpec({kTestWorkload}, 16);
  spec.set_fresh(true);
  const std::string fresh = Submit(spec);
  Submit(MakeSpec({kTestWorkload}, 20), {.priority = 1});
  WorkOn();
  EXPECT_THAT(server_.RecordsOf(fresh), SizeIs(16));
}

TEST_F(JobsTogetherTest, ListedCandidatesAreMeasuredThoughAnotherJobHasOrWill) {
  const std::string other = Submit(MakeSpec({kTestWorkload}, 16));
  Measure(2);
  const std::vector<StoredRecord> known = server_.RecordsOf(other);
  ASSERT_THAT(known, SizeIs(2));
  const std::vector<v1::Assignment> held = worker_.Lease(1);
  ASSERT_THAT(held, SizeIs(1));
  v1::JobSpec spec = MakeSpec({kTestWorkload}, 0);
  spec.set_strategy("listed");
  spec.mutable_tasks(0)->add_candidates(known[0].record.trace());
  spec.mutable_tasks(0)->add_candidates(held[0].trace());
  const std::string listed = Submit(spec);
  EXPECT_TRUE(worker_.Report(held[0]).ok());
  WorkOn();
  EXPECT_EQ(server_.Progress(listed).state(), v1::JOB_STATE_DONE);
  EXPECT_THAT(server_.RecordsOf(listed), SizeIs(2));
}

// A job of narrower limits may leave unmeasured much of the work that the other asks for.
TEST_F(JobsTogetherTest, AJobOfADeadlineMeasuresForNoneWithoutOne) {
  Submit(MakeSpec({kTestWorkload}, 64), {.deadline_seconds = 20});
  const std::string second = Submit(MakeSpec({kTestWorkload}, 64, 2), {.owner = "bob"});
  EXPECT_FALSE(Follows(second));
  Measure(6);
  server_.Wait(30);
  worker_.Register();
  WorkOn();
  EXPECT_EQ(server_.Progress(second).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(server_.Progress(second).tasks(0).trials(), 64);
  EXPECT_FALSE(Follows(second));
}

TEST_F(JobsTogetherTest, LimitsOfAWholeJobAreNotThoseOfItsTasks) {
  v1::JobSpec brief = MakeSpec({kTestWorkload}, 64);
  brief.set_budget_seconds(10);
  Submit(brief);
  EXPECT_FALSE(Follows(Submit(MakeSpec({kTestWorkload}, 32, 2)))) << "the other has only 10 s";
  v1::JobSpec both = MakeSpec({kTestWorkload, kOtherWorkload}, 0, 3);
  both.set_total_trials(24);
  Submit(both);
  v1::JobSpec one = MakeSpec({kTestWorkload}, 0, 4);
  one.set_total_trials(24);
  EXPECT_FALSE(Follows(Submit(one))) << "the other measures 24 trials of two tasks";
  one.set_seed(5);
  EXPECT_TRUE(Follows(Submit(one)));
}

TEST_F(JobsTogetherTest, NobodyWaitsForTrialsBeyondWhatItAskedFor) {
  Submit(MakeSpec({kTestWorkload}, 64));
  const std::string second = Submit(MakeSpec({kTestWorkload}, 12, 2));
  ASSERT_TRUE(Follows(second));
  Measure(12);
  server_.Wait(0.1);
  EXPECT_EQ(server_.Progress(second).state(), v1::JOB_STATE_DONE);
}

// The folder is there before the server.
struct QuotasFolder {
  const TestFolder folder;
};

class FullFarmTest : public JobsTogetherTest {
 protected:
  FullFarmTest() : JobsTogetherTest(Options()) {}

 private:
  static CoordinatorOptions Options() {
    CoordinatorOptions options = FakeServer::DefaultOptions();
    options.jobs.admission.max_running = 1;
    return options;
  }
};

TEST_F(FullFarmTest, ARestartTakesUpTheMostUrgentJobsFirst) {
  const std::string first = Submit(MakeSpec({kTestWorkload}, 16)),
                    low = Submit(MakeSpec({kOtherWorkload}, 16), {.priority = -5}),
                    high = Submit(MakeSpec({kTestWorkload}, 16, 2), {.priority = 5});
  ASSERT_TRUE(server_.Cancel(first).ok());
  server_.Wait(0.1);
  ASSERT_EQ(server_.Progress(high).state(), v1::JOB_STATE_RUNNING);
  server_.Restart();
  server_.Wait(0.1);
  EXPECT_EQ(server_.Progress(high).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(server_.Progress(low).state(), v1::JOB_STATE_WAITING);
}

// A model's job may leave a task alone for hours.
TEST_F(JobsTogetherTest, ATaskThatStandsStillIsTakenBack) {
  v1::JobSpec model = MakeSpec({kTestWorkload, kOtherWorkload}, 64);
  model.mutable_tasks(1)->set_target(kOtherTarget);
  Submit(model);
  const std::string second = Submit(MakeSpec({kTestWorkload}, 64, 2), {.owner = "bob"});
  ASSERT_TRUE(Follows(second));
  server_.Wait(600);
  EXPECT_TRUE(Follows(second)) << "trials of it wait for a device";
  worker_.Register();
  Measure(6);
  EXPECT_TRUE(Follows(second));
  // The search goes on when it has the results of the other task, which no device can measure.
  for (int i = 0; i < 150 && Follows(second); ++i) {
    server_.Wait(1);
    worker_.Work();
  }
  EXPECT_FALSE(Follows(second));
  for (int i = 0; i < 60; ++i) {
    server_.Wait(1);
    worker_.Work();
  }
  EXPECT_EQ(server_.Progress(second).state(), v1::JOB_STATE_DONE);
}

class QuotaChangeTest : private QuotasFolder, public JobsTogetherTest {
 protected:
  QuotaChangeTest() : JobsTogetherTest(Options(WithRoomFor(1))) {}
  std::string WithRoomFor(int jobs) const {
    const std::string path = folder.Path("quotas");
    std::ofstream(path) << absl::StrCat("{\"default\": {\"running_jobs\": ", jobs, "}}");
    return path;
  }

 private:
  static CoordinatorOptions Options(const std::string& path) {
    CoordinatorOptions options = FakeServer::DefaultOptions();
    options.jobs.owners.quotas_file = path;
    return options;
  }
};

// After a restart the one that measures waits for room, for which the other need not wait.
TEST_F(QuotaChangeTest, NobodyWaitsLongForAJobThatDoesNotRun) {
  WithRoomFor(20);
  server_.Wait(2);
  v1::JobSpec endless = MakeSpec({kTestWorkload}, 16);
  endless.set_target(kOtherTarget);
  Submit(endless);
  const std::string first = Submit(MakeSpec({kTestWorkload}, 16)),
                    second = Submit(MakeSpec({kTestWorkload}, 16, 2), {.owner = "bob"});
  ASSERT_TRUE(Follows(second));
  WithRoomFor(1);
  server_.Restart();
  worker_.Register();
  ASSERT_EQ(server_.Progress(first).state(), v1::JOB_STATE_WAITING);
  for (int i = 0; i < 60; ++i) {
    server_.Wait(1);
    worker_.Work();
  }
  EXPECT_EQ(server_.Progress(second).state(), v1::JOB_STATE_DONE);
}

// Its turn comes while its terms are being written.
TEST_F(QuotaChangeTest, AChangeIsNotLostWhenTheJobIsTakenUpMeanwhile) {
  Submit(MakeSpec({kTestWorkload}, 16));
  const std::string second = Submit(MakeSpec({kOtherWorkload}, 16));
  ASSERT_EQ(server_.Progress(second).state(), v1::JOB_STATE_WAITING);
  server_.HoldWrites(true);
  v1::UpdateJobRequest request;
  request.set_job(second);
  request.set_priority(-5);
  EXPECT_FALSE(server_.Update(request).ok()) << "it is not answered yet";
  WithRoomFor(20);
  server_.Wait(2);
  server_.HoldWrites(false);
  server_.Commit();
  server_.Wait(0.1);
  EXPECT_EQ(server_.Progress(second).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(server_.Progress(second).priority(), -5);
  server_.Restart();
  server_.Wait(0.1);
  EXPECT_EQ(server_.Progress(second).priority(), -5);
}

}  // namespace
}  // namespace mycc
