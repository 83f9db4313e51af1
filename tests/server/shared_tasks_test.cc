// Tasks that running jobs have in common are measured once.
#include "server/shared_tasks.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SharedTasksTest : public ::testing::Test {
 protected:
  std::string Submit(const v1::JobSpec& spec, const std::string& owner = "ann", int priority = 0) {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = spec;
    request.set_owner(owner);
    request.set_priority(priority);
    const absl::StatusOr<v1::JobProgress> progress = server_.TrySubmit(request);
    EXPECT_TRUE(progress.ok()) << progress.status();
    return progress.ok() ? progress->job() : "";
  }
  void Measure(int trials) {
    for (int i = 0; i < trials; ++i) {
      for (const v1::Assignment& assignment : worker_.Lease(1)) EXPECT_TRUE(worker_.Report(assignment).ok());
    }
  }
  // Until nothing is left to do, also what a tick finds.
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

  FakeServer server_;
  FakeWorker worker_{&server_, "w"};
};

TEST_F(SharedTasksTest, TheLaterJobTakesTheResultsOfTheEarlierOne) {
  const std::string first = Submit(MakeSpec({kTestWorkload}, 16, 1)),
                    second = Submit(MakeSpec({kTestWorkload}, 12, 2), "bob");
  EXPECT_EQ(server_.Progress(second).message(), absl::StrCat("1 of 1 tasks are measured by job ", first));
  EXPECT_EQ(server_.Progress(second).tasks(0).message(), absl::StrCat("measured by job ", first));
  Measure(5);
  server_.Wait(0.1);
  EXPECT_EQ(server_.Progress(second).tasks(0).best_seconds(),
            server_.Progress(first).tasks(0).best_seconds());
  EXPECT_EQ(WorkOn(), 11) << "the trials of one job";
  const v1::JobProgress progress = server_.Progress(second);
  EXPECT_EQ(progress.state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(progress.message(), "other jobs have measured what it asks for");
  EXPECT_EQ(progress.trials(), 0);
  EXPECT_GT(progress.tasks(0).best_seconds(), 0);
  EXPECT_TRUE(progress.tasks(0).reused());
}

TEST_F(SharedTasksTest, OtherTasksOfTheJobGoOn) {
  Submit(MakeSpec({kTestWorkload}, 8, 1));
  const std::string second = Submit(MakeSpec({kTestWorkload, kOtherWorkload}, 8, 2));
  EXPECT_THAT(server_.Progress(second).message(), HasSubstr("1 of 2 tasks are measured by job"));
  EXPECT_EQ(WorkOn(), 16);
  const v1::JobProgress progress = server_.Progress(second);
  EXPECT_EQ(progress.state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(progress.tasks(0).trials(), 0);
  EXPECT_EQ(progress.tasks(1).trials(), 8);
  EXPECT_GT(progress.tasks(1).finalists(), 0u);
}

TEST_F(SharedTasksTest, ACancelledJobLeavesItsTaskToTheOther) {
  const std::string first = Submit(MakeSpec({kTestWorkload}, 16, 1)),
                    second = Submit(MakeSpec({kTestWorkload}, 16, 2));
  Measure(6);
  ASSERT_TRUE(server_.Cancel(first).ok());
  server_.Wait(0.1);
  EXPECT_THAT(server_.Progress(second).message(), IsEmpty());
  EXPECT_EQ(WorkOn(), 16);
  EXPECT_EQ(server_.Progress(second).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(server_.Progress(second).tasks(0).trials(), 16);
}

TEST_F(SharedTasksTest, ATaskThatIsTakenBackJoinsTheOthersOfTheJob) {
  const std::string first = Submit(MakeSpec({kTestWorkload}, 16, 1)),
                    second = Submit(MakeSpec({kTestWorkload, kOtherWorkload}, 16, 2));
  Measure(20);
  ASSERT_TRUE(server_.Cancel(first).ok());
  WorkOn();
  const v1::JobProgress progress = server_.Progress(second);
  EXPECT_EQ(progress.state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(progress.tasks(0).trials(), 16);
  EXPECT_GE(progress.tasks(1).trials(), 8) << "its space is small";
}

TEST_F(SharedTasksTest, HoldsOverARestart) {
  const std::string first = Submit(MakeSpec({kTestWorkload}, 16, 1)),
                    second = Submit(MakeSpec({kTestWorkload}, 16, 2));
  Measure(6);
  server_.Restart();
  worker_.RegisterAgain();
  server_.Wait(0.1);
  EXPECT_THAT(server_.Progress(second).message(), HasSubstr(first));
  EXPECT_EQ(WorkOn(), 10);
  EXPECT_EQ(server_.Progress(second).state(), v1::JOB_STATE_DONE);
}

TEST_F(SharedTasksTest, ARestartAfterTheOtherWasCancelledGoesOn) {
  const std::string first = Submit(MakeSpec({kTestWorkload}, 16, 1)),
                    second = Submit(MakeSpec({kTestWorkload}, 16, 2));
  Measure(6);
  ASSERT_TRUE(JobStore(&server_.log()).SetJobState(first, JobState::kCancelled, "cancelled").ok());
  server_.Restart();
  worker_.Register();
  EXPECT_EQ(WorkOn(), 16);
  EXPECT_EQ(server_.Progress(second).state(), v1::JOB_STATE_DONE);
}

TEST_F(SharedTasksTest, NobodyWaitsForLessUrgentWork) {
  const std::string low = Submit(MakeSpec({kTestWorkload}, 8, 1), "ann", -1),
                    high = Submit(MakeSpec({kTestWorkload}, 8, 2), "bob", 1);
  EXPECT_THAT(server_.Progress(high).message(), IsEmpty());
  const std::string same = Submit(MakeSpec({kTestWorkload}, 8, 3), "cleo", 1);
  EXPECT_THAT(server_.Progress(same).message(), HasSubstr(high));
  v1::UpdateJobRequest request;
  request.set_job(high);
  request.set_priority(0);
  ASSERT_TRUE(server_.Update(request).ok());
  server_.Wait(0.1);
  EXPECT_THAT(server_.Progress(same).message(), IsEmpty()) << "it became more urgent than the other";
  WorkOn();
  for (const std::string& job : {low, high, same})
    EXPECT_EQ(server_.Progress(job).state(), v1::JOB_STATE_DONE) << job;
}

TEST_F(SharedTasksTest, AJobThatAsksForMoreOrAfreshMeasuresItself) {
  Submit(MakeSpec({kTestWorkload}, 8, 1));
  EXPECT_THAT(server_.Progress(Submit(MakeSpec({kTestWorkload}, 9, 2))).message(), IsEmpty());
  v1::JobSpec fresh = MakeSpec({kTestWorkload}, 8, 2);
  fresh.set_fresh(true);
  EXPECT_THAT(server_.Progress(Submit(fresh)).message(), IsEmpty());
  v1::JobSpec other = MakeSpec({kTestWorkload}, 8, 2);
  other.set_strategy("grid");
  EXPECT_THAT(server_.Progress(Submit(other)).message(), IsEmpty());
}

TEST_F(SharedTasksTest, ADeadlineEndsTheWaitWithTheBestSoFar) {
  Submit(MakeSpec({kTestWorkload}, 64, 1));
  v1::SubmitJobRequest request;
  *request.mutable_spec() = MakeSpec({kTestWorkload}, 64, 2);
  request.set_deadline_unix_micros(server_.time().UnixMicros() + 20000000);
  const std::string second = server_.TrySubmit(request)->job();
  Measure(6);
  for (int i = 0; i < 25; ++i) {
    server_.Wait(1);
    EXPECT_TRUE(worker_.Beat().ok());
  }
  EXPECT_EQ(server_.Progress(second).state(), v1::JOB_STATE_DONE);
  EXPECT_GT(server_.Progress(second).tasks(0).best_seconds(), 0);
}

}  // namespace
}  // namespace mycc
