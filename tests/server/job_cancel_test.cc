// Jobs that are cancelled, and the clients that wait for them.
#include "base/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job_state.pb.h"
#include "proto/names.h"
#include "server/job_admission.h"
#include "server/job_plan.h"
#include "server/local_search.h"
#include "tests/server/answered.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

int64_t LeasedInLog(FakeServer* server) {
  return *server->log().database()->ReadInt("SELECT count(*) FROM trials WHERE state = 2");
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
    ASSERT_TRUE(server->jobs().Renew(job, "bob", 0.5).ok());
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
  ASSERT_TRUE(server->jobs().Renew(job, "bob", 0.5).ok());
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

}  // namespace
}  // namespace mycc
