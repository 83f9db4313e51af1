// Jobs that are submitted again, damaged jobs, and leases from before a restart.
#include "server/job_admission.h"

#include "base/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job_state.pb.h"
#include "proto/names.h"
#include "server/job_plan.h"
#include "server/local_search.h"
#include "tests/server/answered.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

v1::JobSpec FreshSpec(uint32_t trials) {
  v1::JobSpec spec = MakeSpec({kTestWorkload}, trials);
  spec.set_fresh(true);
  return spec;
}

TEST(SubmitTest, SubmittedAgainIsTheSameJob) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const v1::JobSpec spec = MakeSpec({kTestWorkload}, 4);
  const std::string job = server.Submit(spec, "mine");
  EXPECT_EQ(server.Submit(spec, "mine"), job);
  EXPECT_NE(server.Submit(spec, "other"), job);
  EXPECT_NE(server.Submit(spec), server.Submit(spec)) << "without words, nobody asks for it again";
  worker.Work();
  EXPECT_EQ(server.Submit(spec, "mine"), job) << "it has done what is asked";
}

TEST(SubmitTest, ASecondRequestBeforeTheFirstIsInTheLogIsTheSameJob) {
  FakeServer server;
  v1::SubmitJobRequest request;
  *request.mutable_spec() = MakeSpec({kTestWorkload}, 4);
  request.set_submission("mine");
  const Answered first, second;
  server->Submit(request, first.reply());
  server->Submit(request, second.reply());
  EXPECT_FALSE(first.progress->ok()) << "before it is in the log";
  server.Commit();
  ASSERT_TRUE(first.progress->ok());
  ASSERT_TRUE(second.progress->ok());
  EXPECT_EQ((*first.progress)->job(), (*second.progress)->job());
  EXPECT_THAT(server.List(), SizeIs(1));
}

TEST(SubmitTest, FreshIsANewJobUntilOneThatIsFreshIsUnfinished) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 4), "mine");
  worker.Work();
  const std::string fresh = server.Submit(FreshSpec(4), "mine");
  EXPECT_NE(fresh, job);
  EXPECT_EQ(server.Submit(FreshSpec(4), "mine"), fresh) << "it is joined";
  ASSERT_TRUE(server.Cancel(fresh).ok());
  EXPECT_NE(server.Submit(FreshSpec(4), "mine"), fresh) << "what was cancelled is not fresh";
}

TEST(SubmitTest, AFailedJobGivesWayToANewOne) {
  FakeServer server;
  const v1::JobSpec spec = MakeSpec({kTestWorkload}, 4);
  const std::string job = server.Submit(spec, "mine");
  ASSERT_TRUE(JobStore(&server.log()).SetJobState(job, JobState::kFailed, "the search failed").ok());
  server.Restart();
  EXPECT_NE(server.Submit(spec, "mine"), job);
}

// A log of a build in which a job's id was the hash of what was submitted.
TEST(SubmitTest, AJobOfAnOlderBuildIsContinuedByTheSameSubmission) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const v1::JobSpec spec = MakeSpec({kTestWorkload}, 8);
  const std::string made = server.Submit(spec, "mine"), old = OldJobIdOf("mine", 1);
  ASSERT_THAT(old, SizeIs(17));
  for (const v1::Assignment& assignment : worker.Lease(3)) EXPECT_TRUE(worker.Report(assignment).ok());
  Database* const database = server.log().database();
  ASSERT_TRUE(database
                  ->Execute("PRAGMA defer_foreign_keys = 1; BEGIN; UPDATE tasks SET job = '" + old +
                            "'; UPDATE jobs SET id = '" + old + "', submission = ''; COMMIT")
                  .ok());
  server.Restart();
  EXPECT_EQ(server.Submit(spec, "mine"), old) << "not " << made;
  worker.Register();
  EXPECT_EQ(server.Progress(old).trials(), 3);
  EXPECT_EQ(worker.Work(), 5);
  EXPECT_EQ(server.Submit(spec, "mine"), old) << "done";
}

TEST(SubmitTest, IdsAreRandomAndLong) {
  const std::string id = RandomJobId();
  EXPECT_TRUE(IsJobId(id)) << id;
  EXPECT_THAT(id, SizeIs(33));
  EXPECT_NE(RandomJobId(), id);
}

TEST(DamagedJobTest, IsListedWithItsReasonAndHoldsUpNobody) {
  CoordinatorOptions options = FakeServer::DefaultOptions();
  options.jobs.admission.max_running = 1;
  FakeServer server(options);
  const v1::JobSpec spec = MakeSpec({kTestWorkload}, 4);
  v1::SubmitJobRequest request;
  *request.mutable_spec() = spec;
  request.set_submission("mine");
  request.set_owner("ann");
  const std::string damaged = server.TrySubmit(request).value().job(),
                    sound = server.Submit(MakeSpec({kTestWorkload}, 4, 2));
  ASSERT_TRUE(
      server.log().database()->Execute("UPDATE jobs SET spec = x'ff' WHERE id = '" + damaged + "'").ok());
  server.Restart();
  FakeWorker worker(&server, "w");
  EXPECT_EQ(worker.Work(), 4);
  EXPECT_EQ(server.Progress(sound).state(), v1::JOB_STATE_DONE);

  const std::vector<v1::JobProgress> jobs = server.List();
  ASSERT_THAT(jobs, SizeIs(2));
  EXPECT_EQ(jobs[1].job(), damaged);
  EXPECT_EQ(jobs[1].owner(), "ann") << "its name is in what is damaged";
  EXPECT_EQ(jobs[1].state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(jobs[1].message(), HasSubstr("its spec is damaged"));
  EXPECT_EQ(server.Progress(damaged).state(), v1::JOB_STATE_FAILED) << "what `watch` shows";
  EXPECT_EQ(server.Cancel(damaged)->state(), v1::JOB_STATE_FAILED) << "it had ended";
  EXPECT_NE(server.Submit(spec, "mine"), damaged);
}

// A log that can be read and not written: the job fails at each resume, and cannot even be told so.
TEST(DamagedJobTest, FailsAtEachResumeAndCanBeCancelled) {
  FakeServer server;
  const v1::JobSpec spec = MakeSpec({kTestWorkload}, 4);
  const std::string damaged = server.Submit(spec, "mine");
  Database* database = server.log().database();
  ASSERT_TRUE(database
                  ->Execute("UPDATE tasks SET spec = x'ff'; CREATE TRIGGER stuck BEFORE UPDATE ON jobs"
                            " WHEN new.state = 4 BEGIN SELECT raise(ABORT, 'it cannot be written'); END")
                  .ok());
  for (int start = 0; start < 2; ++start) {
    server.Restart();
    EXPECT_EQ(server.Progress(damaged).state(), v1::JOB_STATE_FAILED);
    EXPECT_THAT(server.Progress(damaged).message(), HasSubstr("the state of task 0 is damaged"));
  }
  v1::SubmitJobRequest request;
  *request.mutable_spec() = spec;
  request.set_submission("mine");
  const auto refused =
      AnswerOf<v1::JobProgress>(&server, [&](const JobReply& reply) { server->Submit(request, reply); });
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("the state of task 0 is damaged"));
  const auto cancelled = server.Cancel(damaged);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->state(), v1::JOB_STATE_CANCELLED);
  server.Restart();
  EXPECT_EQ(server.Progress(damaged).state(), v1::JOB_STATE_CANCELLED);
}

// The worker of `tune` is there before its job is taken up.
TEST(AdoptedLeasesTest, ThoseOfAWorkerThatIsBackAlreadyReturnAtOnce) {
  CoordinatorOptions options = FakeServer::DefaultOptions();
  options.jobs.admission.resume_all = false;
  FakeServer server(options);
  const v1::JobSpec spec = MakeSpec({kTestWorkload}, 4);
  const std::string job = server.Submit(spec, "mine");
  FakeWorker worker(&server, "embedded"), away(&server, "away");
  ASSERT_THAT(worker.Lease(2), SizeIs(2));
  ASSERT_THAT(away.Lease(2), SizeIs(2));
  server.Restart();
  worker.Register();
  EXPECT_EQ(server.Submit(spec, "mine"), job);
  const std::vector<v1::Assignment> again = worker.Lease(4);
  ASSERT_THAT(again, SizeIs(2)) << "not when the leases run out; the other worker may still come back";
  EXPECT_EQ(again[0].lease().attempt(), 2u);
}

TEST(AdoptedLeasesTest, NobodyReturnsToAServerOfItsOwn) {
  CoordinatorOptions options = FakeServer::DefaultOptions();
  options.jobs.admission.resume_all = false;
  options.dispatch.workers_return = false;
  FakeServer server(options);
  const v1::JobSpec spec = MakeSpec({kTestWorkload}, 4);
  server.Submit(spec, "mine");
  FakeWorker before(&server, "before");
  ASSERT_THAT(before.Lease(4), SizeIs(4));
  server.Restart();
  FakeWorker worker(&server, "embedded");
  server.Submit(spec, "mine");
  EXPECT_EQ(worker.Work(), 4);
}

}  // namespace
}  // namespace mycc
