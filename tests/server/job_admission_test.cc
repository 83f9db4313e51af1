// Jobs as clients know them: submitted again, waited for by several, cancelled, and found again after a death
// of the server.
#include "server/job_admission.h"

#include "base/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job_state.pb.h"
#include "proto/names.h"
#include "server/job_plan.h"
#include "server/local_search.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

v1::JobSpec FreshSpec(uint32_t trials) {
  v1::JobSpec spec = MakeSpec({kTestWorkload}, trials);
  spec.set_fresh(true);
  return spec;
}

int64_t LeasedInLog(FakeServer* server) {
  return *server->log().database()->ReadInt("SELECT count(*) FROM trials WHERE state = 2");
}

// The answer to a submission that is not waited for.
struct Answered {
  std::shared_ptr<absl::StatusOr<v1::JobProgress>> progress =
      std::make_shared<absl::StatusOr<v1::JobProgress>>(absl::UnknownError("no answer yet"));
  JobReply reply() const {
    return [kept = progress](absl::StatusOr<v1::JobProgress> given) { *kept = std::move(given); };
  }
};

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

TEST(CancelTest, KeepsWhatWasMeasuredAndWhatIsInHand) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 100));
  for (const v1::Assignment& assignment : worker.Lease(3)) EXPECT_TRUE(worker.Report(assignment).ok());
  const v1::Assignment in_hand = worker.Lease(1).at(0);
  const auto cancelled = server.Cancel(job, "ann@host");
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(cancelled->message(), "cancelled by ann@host");
  EXPECT_EQ(cancelled->trials(), 3);
  EXPECT_THAT(worker.Lease(4), IsEmpty());
  EXPECT_TRUE(worker.Report(in_hand).ok());
  EXPECT_THAT(worker.ignored, IsEmpty());
  EXPECT_EQ(server.RecordsOf(job).size(), 4u) << "it was paid for";
  EXPECT_TRUE(absl::IsNotFound(server.Cancel("j0000000000000000").status()));
}

TEST(CancelTest, IsInTheLogBeforeItIsAnswered) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 100));
  ASSERT_THAT(worker.Lease(3), SizeIs(3));
  v1::CancelJobRequest request;
  request.set_job(job);
  const Answered unanswered;
  server->jobs().Cancel(request, unanswered.reply());
  EXPECT_FALSE(unanswered.progress->ok());
  server.Restart();
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_RUNNING) << "nothing was promised";

  ASSERT_TRUE(server.Cancel(job).ok());
  server.Restart();  // at once
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(LeasedInLog(&server), 0);
  worker.Register();
  EXPECT_THAT(worker.Lease(4), IsEmpty());
}

TEST(CancelTest, TellsTheWorkersWithTheirNextAnswers) {
  FakeServer server;
  FakeWorker worker(&server, "w"), other(&server, "other");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 100));
  const v1::Assignment held = worker.Lease(1).at(0);
  ASSERT_THAT(other.Lease(1), SizeIs(1));
  ASSERT_TRUE(server.Cancel(job).ok());
  EXPECT_EQ(LeasedInLog(&server), 0);
  EXPECT_EQ(server->workers().Devices()[0].leases(), 0u);
  EXPECT_THAT(worker.Lease(1), IsEmpty());
  ASSERT_EQ(worker.instructions.revoked_size(), 1);
  EXPECT_EQ(worker.instructions.revoked(0).trial(), held.lease().trial());
  EXPECT_EQ(worker.instructions.revoked(0).attempt(), held.lease().attempt());
}

TEST(CancelTest, AJobThatWaitsForItsTurnNeverRuns) {
  CoordinatorOptions options = FakeServer::DefaultOptions();
  options.jobs.admission.max_running = 1;
  FakeServer server(options);
  FakeWorker worker(&server, "w");
  const std::string first = server.Submit(MakeSpec({kTestWorkload}, 4)),
                    second = server.Submit(MakeSpec({kTestWorkload}, 4, 2));
  EXPECT_EQ(server.Progress(second).message(), "waiting for its turn");
  ASSERT_TRUE(server.Cancel(second).ok());
  EXPECT_EQ(worker.Work(), 4);
  EXPECT_EQ(server.Progress(first).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(server.Progress(second).state(), v1::JOB_STATE_CANCELLED);
  const auto again = server.Cancel(first);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->state(), v1::JOB_STATE_DONE) << "it had ended";
}

TEST(CancelTest, TheSameSubmissionContinuesFromWhatWasMeasured) {
  FakeServer undisturbed, server;
  FakeWorker other(&undisturbed, "w"), worker(&server, "w");
  const v1::JobSpec spec = MakeSpec({kTestWorkload}, 16);
  const std::string job = server.Submit(spec, "mine");
  for (const v1::Assignment& assignment : worker.Lease(3)) EXPECT_TRUE(worker.Report(assignment).ok());
  const v1::Assignment in_hand = worker.Lease(1).at(0);
  ASSERT_TRUE(server.Cancel(job).ok());
  EXPECT_EQ(server.Submit(spec, "mine"), job);
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(server.Progress(job).message(), "");
  EXPECT_EQ(server.Progress(job).trials(), 3);
  EXPECT_TRUE(worker.Report(in_hand).ok());
  EXPECT_THAT(worker.ignored, ElementsAre(in_hand.lease().trial())) << "it is given out again";
  EXPECT_EQ(worker.Work(), 13);
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
  undisturbed.Submit(spec, "mine");
  other.Work();
  EXPECT_EQ(server.TracesOf(job), undisturbed.TracesOf(job)) << "the same search";
}

// The search of a cancelled job may still be at work when the job is taken up again.
TEST(CancelTest, TakenUpAgainWhileTheOldSearchIsAtWork) {
  std::vector<std::function<void()>> searches;
  TestFolder folder;
  FakeTime time;
  const auto log = TuningLog::Open(folder.Path("test.db"), OpenMode::kServe);
  ASSERT_TRUE(log.ok()) << log.status();
  Executors executors;
  executors.write = [](const LogWrite& write, const LogWriteDone& done) { done(write()); };
  executors.read = [&log](const LogRead& read, const std::function<void()>& done) {
    read(log->get()), done();
  };
  executors.search = [&searches](std::function<void()> work, std::function<void()> done) {
    searches.push_back([work = std::move(work), done = std::move(done)] { work(), done(); });
  };
  executors.start_search = LocalSearch::Start;
  Coordinator server(FakeServer::DefaultOptions(), log->get(), &time, executors);
  ASSERT_TRUE(server.Start().ok());
  v1::SubmitJobRequest request;
  *request.mutable_spec() = MakeSpec({kTestWorkload}, 8);
  request.set_submission("mine");
  const Answered first, cancelled, second;
  server.Submit(request, first.reply());
  ASSERT_TRUE(first.progress->ok());
  v1::CancelJobRequest cancel;
  cancel.set_job((*first.progress)->job());
  server.jobs().Cancel(cancel, cancelled.reply());
  ASSERT_TRUE(cancelled.progress->ok());
  EXPECT_EQ((*cancelled.progress)->state(), v1::JOB_STATE_CANCELLED);
  server.Submit(request, second.reply());
  ASSERT_TRUE(second.progress->ok());
  EXPECT_EQ((*second.progress)->job(), (*first.progress)->job());
  ASSERT_THAT(searches, SizeIs(2));
  for (size_t i = 0; i < searches.size() && i < 20; ++i) {
    const std::function<void()> search = searches[i];  // which may add others
    search();
  }
  const Answered shown;
  server.Show(cancel.job(), shown.reply());
  EXPECT_EQ((*shown.progress)->state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(*(*log)->database()->ReadInt("SELECT count(*) FROM trials"), 8) << "two rounds, each once";
}

TEST(DamagedJobTest, IsListedWithItsReasonAndHoldsUpNobody) {
  CoordinatorOptions options = FakeServer::DefaultOptions();
  options.jobs.admission.max_running = 1;
  FakeServer server(options);
  const v1::JobSpec spec = MakeSpec({kTestWorkload}, 4);
  const std::string damaged = server.Submit(spec, "mine"),
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
  EXPECT_EQ(jobs[1].name(), "test");
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

TEST(WaitersTest, TheLastOneToLeaveCancelsTheJob) {
  FakeServer server;
  const v1::JobSpec spec = MakeSpec({kTestWorkload}, 100);
  const std::string job = server.Submit(spec, "mine", "ann");
  EXPECT_EQ(server.Progress(job).waiters(), 1u);
  EXPECT_EQ(server.Submit(spec, "mine", "bob"), job);
  EXPECT_EQ(server.Progress(job).waiters(), 2u);
  EXPECT_EQ(server.Submit(spec, "mine", "bob"), job) << "asked again after a lost answer";
  EXPECT_EQ(server.List()[0].waiters(), 2u);

  auto left = server.Leave(job, "ann");
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_EQ(left->state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(left->waiters(), 1u);
  left = server.Leave(job, "bob");
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_EQ(left->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(left->message(), "cancelled: the last command that waited for it was interrupted");
  server.Restart();
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(server.Submit(spec, "mine", "ann"), job) << "and it is taken up again";
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_RUNNING);
}

TEST(WaitersTest, ASilentOneStopsCountingAndCancelsNothing) {
  FakeServer server;
  const v1::JobSpec spec = MakeSpec({kTestWorkload}, 100);
  const std::string job = server.Submit(spec, "mine", "killed");
  server.Submit(spec, "mine", "bob");
  for (int i = 0; i < 4; ++i) {
    server.Wait(10);
    ASSERT_TRUE(server->jobs().Hear(job, "bob", 0.5).ok());
  }
  EXPECT_EQ(server.Progress(job).waiters(), 1u);
  server.Wait(60);
  EXPECT_EQ(server.Progress(job).waiters(), 0u);
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(server.Leave(job, "bob")->state(), v1::JOB_STATE_CANCELLED) << "he was only stopped for a while";
}

TEST(WaitersTest, ADetachedJobIsNotCancelledByWhoeverLeaves) {
  FakeServer server;
  const v1::JobSpec spec = MakeSpec({kTestWorkload}, 100);
  const std::string job = server.Submit(spec, "mine");
  EXPECT_EQ(server.Progress(job).waiters(), 0u);
  server.Submit(spec, "mine", "ann");
  EXPECT_EQ(server.Leave(job, "ann")->state(), v1::JOB_STATE_RUNNING);

  const std::string joined = server.Submit(spec, "theirs", "ann");
  server.Submit(spec, "theirs");  // now somebody wants it without waiting
  server.Restart();
  server.Wait(6);
  EXPECT_EQ(server.Leave(joined, "ann")->state(), v1::JOB_STATE_RUNNING);

  ASSERT_TRUE(server.Cancel(job).ok());
  server.Submit(spec, "mine", "ann");
  EXPECT_EQ(server.Leave(job, "ann")->state(), v1::JOB_STATE_CANCELLED) << "nobody else wants it any more";
}

TEST(WaitersTest, AfterARestartTheOthersAreHeardFirst) {
  FakeServer server;
  const v1::JobSpec spec = MakeSpec({kTestWorkload}, 100);
  const std::string job = server.Submit(spec, "mine", "ann");
  server.Submit(spec, "mine", "bob");
  const std::string alone = server.Submit(spec, "theirs", "eve");
  server.Restart();
  const Answered ann, eve;
  v1::LeaveJobRequest request;
  request.set_job(job);
  request.set_client("ann");
  server->jobs().Leave(request, ann.reply());
  request.set_job(alone);
  request.set_client("eve");
  server->jobs().Leave(request, eve.reply());
  server.Commit();
  EXPECT_FALSE(ann.progress->ok()) << "the server does not know yet who else waits";
  server.Wait(1);
  ASSERT_TRUE(server->jobs().Hear(job, "bob", 0.5).ok());
  server.Wait(5);
  ASSERT_TRUE(ann.progress->ok());
  EXPECT_EQ((*ann.progress)->state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ((*ann.progress)->waiters(), 1u);
  ASSERT_TRUE(eve.progress->ok());
  EXPECT_EQ((*eve.progress)->state(), v1::JOB_STATE_CANCELLED);
}

TEST(WaitersTest, JoinedWhileItIsBeingCancelledIsTakenUpAgain) {
  FakeServer server;
  v1::SubmitJobRequest request;
  *request.mutable_spec() = MakeSpec({kTestWorkload}, 100);
  request.set_submission("mine");
  request.set_client("bob");
  const std::string job = server.Submit(request.spec(), "mine", "ann");
  v1::LeaveJobRequest leave;
  leave.set_job(job);
  leave.set_client("ann");
  const Answered ann, bob;
  server->jobs().Leave(leave, ann.reply());
  server->Submit(request, bob.reply());
  server.Commit();
  ASSERT_TRUE(ann.progress->ok());
  EXPECT_EQ((*ann.progress)->state(), v1::JOB_STATE_CANCELLED);
  ASSERT_TRUE(bob.progress->ok());
  EXPECT_EQ((*bob.progress)->job(), job);
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(server.Progress(job).waiters(), 1u);
}

TEST(WaitersTest, NamesOfThoseWhoCancelAreFitForTerminals) {
  FakeServer server;
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 100));
  EXPECT_EQ(server.Cancel(job, "\x1b[31mann\n" + std::string(200, 'x'))->message(),
            "cancelled by ?[31mann?" + std::string(91, 'x'));
  v1::SubmitJobRequest request;
  *request.mutable_spec() = MakeSpec({kTestWorkload}, 4);
  request.set_client(std::string(65, 'c'));
  EXPECT_TRUE(absl::IsInvalidArgument(AnswerOf<v1::JobProgress>(&server, [&](const JobReply& reply) {
                                        server->Submit(request, reply);
                                      }).status()));
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
