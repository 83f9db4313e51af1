// A lease belongs to the session that lists it. After the loss of any message, its trial returns after one
// lease.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

absl::Status DiskFull() { return absl::ResourceExhaustedError("disk full"); }

std::vector<std::string> NamesOf(const std::vector<v1::Assignment>& assignments) {
  std::vector<std::string> names;
  for (const v1::Assignment& assignment : assignments) names.push_back(assignment.lease().trial());
  return names;
}

// Beats as often as a worker does.
void WaitWith(FakeServer* server, FakeWorker* worker, double seconds) {
  for (double waited = 0; waited < seconds; waited += 3) {
    server->Wait(3);
    EXPECT_TRUE(worker->Beat().ok());
  }
}

TEST(LeasingTest, LostLeaseResponseCostsOneLease) {
  FakeServer server;
  FakeWorker worker(&server, "w"), other(&server, "other");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 4));
  const std::vector<v1::Assignment> lost = worker.Lease(2);
  ASSERT_THAT(lost, SizeIs(2));
  const std::vector<v1::Assignment> arrived = worker.Lease(1);
  for (const v1::Assignment& assignment : lost)
    worker.held.erase({assignment.lease().trial(), assignment.lease().attempt()});
  WaitWith(&server, &worker, 12);
  const std::vector<v1::Assignment> again = other.Lease(4);
  EXPECT_THAT(again, SizeIs(3)) << "no suspects, and with the one that nobody had yet";
  EXPECT_EQ(again[0].lease().attempt(), 2u);
  EXPECT_TRUE(worker.Report(arrived.at(0)).ok());
  EXPECT_EQ(worker.answer.kind(), v1::ReportAnswer::KEPT) << "what it named is its own still";
  for (const v1::Assignment& assignment : again) EXPECT_TRUE(other.Report(assignment).ok());
  other.Work();
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
}

TEST(LeasingTest, OlderWorkersMessagesRenewAllOfItsLeases) {
  FakeServer server;
  FakeWorker worker(&server, "w", kTestTarget, FakeWorker::Version::kBefore), other(&server, "other");
  server.Submit(MakeSpec({kTestWorkload}, 4));
  ASSERT_THAT(worker.Lease(4), SizeIs(4));
  WaitWith(&server, &worker, 30);
  EXPECT_THAT(other.Lease(4), IsEmpty());
  server.Wait(11);
  EXPECT_THAT(other.Lease(4), SizeIs(1)) << "suspects of a silent worker";
}

// A call that waits for trials, and who waits for it.
struct WaitingCall {
  WaitingCall(FakeServer* server, const FakeWorker& worker) {
    v1::LeaseRequest request;
    request.set_session(worker.session);
    request.set_device("cpu");
    request.set_max_trials(2);
    request.set_wait_seconds(20);
    (*server)->workers().Lease(
        request, [this] { return alive; },
        [this](absl::StatusOr<v1::LeaseResponse> given) { answer = std::move(given); });
  }
  bool alive = true;
  std::optional<absl::StatusOr<v1::LeaseResponse>> answer;
};

TEST(LeasingTest, CallerThatTimedOutGetsNothing) {
  FakeServer server;
  FakeWorker worker(&server, "w"), other(&server, "other");
  WaitingCall call(&server, worker);
  server.Submit(MakeSpec({kTestWorkload}, 2));
  server.HoldWrites(true);
  server.Wait(0.1);  // trials are granted, and on their way into the log
  EXPECT_FALSE(call.answer.has_value());
  call.alive = false;
  server.HoldWrites(false);
  server.Commit();
  ASSERT_TRUE(call.answer.has_value());
  EXPECT_FALSE(call.answer->ok());
  EXPECT_THAT(other.Lease(4), SizeIs(2)) << "at once, and not as suspects";
}

TEST(LeasingTest, CallIsAnsweredWhenItsGrantsAreInTheLog) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  server.Submit(MakeSpec({kTestWorkload}, 2));
  server.HoldWrites(true);
  WaitingCall call(&server, worker);
  server.Wait(30);
  EXPECT_FALSE(call.answer.has_value()) << "a slow disk is nobody's silence";
  server.HoldWrites(false);
  EXPECT_TRUE(worker.Beat().ok());
  ASSERT_TRUE(call.answer.has_value() && call.answer->ok());
  EXPECT_EQ((*call.answer)->assignments_size(), 2);
  server.Wait(9);
  EXPECT_EQ(server->workers().Devices()[0].leases(), 2u) << "a lease runs from its answer";
}

TEST(LeasingTest, GrantThatCannotBeWrittenWasNotMade) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 3));
  server.FailWrites(DiskFull());
  EXPECT_EQ(worker.TryLease(2).status(), DiskFull());
  server.FailWrites(absl::OkStatus());
  const std::vector<v1::Assignment> leased = worker.Lease(3);
  ASSERT_THAT(leased, SizeIs(3));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(leased[i].lease().trial(), job + "/0/0/" + std::to_string(i)) << "in their order";
    EXPECT_EQ(leased[i].lease().attempt(), 1u);
  }
}

TEST(LeasingTest, ReturnThatFailedOnAFullDiskIsWrittenLater) {
  FakeServer server;
  FakeWorker leaver(&server, "leaver"), other(&server, "other");
  server.Submit(MakeSpec({kTestWorkload}, 2));
  ASSERT_THAT(leaver.Lease(2), SizeIs(2));
  server.FailWrites(DiskFull());
  EXPECT_TRUE(leaver.Leave().ok());
  server.Wait(2);
  EXPECT_THAT(other.Lease(2), IsEmpty());
  server.FailWrites(absl::OkStatus());
  server.Wait(2);
  EXPECT_THAT(other.Lease(2), SizeIs(2));
}

TEST(LeasingTest, LossThatFailedOnAFullDiskIsWrittenLater) {
  FakeServer server;
  FakeWorker silent(&server, "silent"), other(&server, "other");
  server.Submit(MakeSpec({kTestWorkload}, 1));
  ASSERT_THAT(silent.Lease(1), SizeIs(1));
  server.FailWrites(DiskFull());
  server.Wait(11);
  server.Wait(100);
  server.FailWrites(absl::OkStatus());
  server.Wait(2);
  EXPECT_TRUE(other.RegisterAgain().lost().empty());
  EXPECT_THAT(other.Lease(1), SizeIs(1));
}

TEST(LeasingTest, SilentWorkerIsRevokedWhatItNames) {
  FakeServer server;
  FakeWorker slow(&server, "slow"), quick(&server, "quick");
  server.Submit(MakeSpec({kTestWorkload}, 1));
  const std::vector<v1::Assignment> held = slow.Lease(1);
  ASSERT_THAT(held, SizeIs(1));
  server.Wait(11);
  EXPECT_TRUE(slow.Beat().ok());
  ASSERT_EQ(slow.instructions.revoked_size(), 1);
  EXPECT_EQ(slow.instructions.revoked(0).trial(), held[0].lease().trial());
  EXPECT_THAT(slow.held, IsEmpty());
  EXPECT_TRUE(slow.Beat().ok());
  EXPECT_EQ(slow.instructions.revoked_size(), 0) << "it does not name it any more";
}

// A suspect that came alone, on one of two devices.
TEST(LeasingTest, SuspectHoldsUpNeitherItsJobNorOtherDevices) {
  FakeServer server;
  FakeWorker victim(&server, "victim");
  server.Submit(MakeSpec({kTestWorkload}, 8));
  const std::vector<std::string> suspects = NamesOf(victim.Lease(2));
  server.Wait(11);
  FakeWorker worker(&server, "w");
  worker.devices.push_back(worker.devices[0]);
  worker.devices[1].set_device("cpu1");
  worker.RegisterAgain();
  const std::vector<v1::Assignment> suspect = worker.Lease(4, "cpu");
  ASSERT_THAT(NamesOf(suspect), ElementsAre(suspects[0]));
  const std::vector<v1::Assignment> others = worker.Lease(4, "cpu1");
  ASSERT_FALSE(others.empty());
  for (const v1::Assignment& assignment : others) EXPECT_EQ(assignment.lease().attempt(), 1u);

  // The worker is lost with all of them, and the suspect is blamed alone.
  server.Wait(11);
  FakeWorker third(&server, "third");
  EXPECT_THAT(third.Lease(4), SizeIs(1));
  EXPECT_THAT(third.Lease(4), SizeIs(others.size())) << "these are no suspects";
}

TEST(LeasingTest, LossIsTriedOnAnotherWorkerWhereThereIsOne) {
  FakeServer server;
  FakeWorker bad(&server, "bad"), good(&server, "good");
  server.Submit(MakeSpec({kTestWorkload}, 1));
  const v1::Assignment held = bad.Lease(1).at(0);
  v1::MeasureResult lost;
  lost.set_status(v1::MEASURE_STATUS_DEVICE_LOST);
  EXPECT_TRUE(bad.Report(held, lost).ok());
  EXPECT_THAT(bad.Lease(1), IsEmpty());
  EXPECT_THAT(NamesOf(good.Lease(1)), ElementsAre(held.lease().trial()));
}

TEST(LeasingTest, OneProcessAtATimeHasAName) {
  FakeServer server;
  FakeWorker first(&server, "w");
  server.Submit(MakeSpec({kTestWorkload}, 4));
  const v1::Assignment held = first.Lease(1).at(0);

  v1::RegisterRequest second = first.Registration();
  second.set_instance("another process");
  second.set_replaces("not the first");
  const absl::Status taken = first.TryRegister(second).status();
  EXPECT_TRUE(absl::IsAlreadyExists(taken)) << taken;
  EXPECT_THAT(std::string(taken.message()), HasSubstr("the name w belongs to a worker that was heard"));
  EXPECT_TRUE(first.Report(held).ok());
  EXPECT_EQ(first.answer.kind(), v1::ReportAnswer::KEPT);

  v1::RegisterRequest older = second;  // of a version that does not say which process it is
  older.clear_instance();
  EXPECT_TRUE(absl::IsAlreadyExists(first.TryRegister(older).status()));

  EXPECT_NE(first.RegisterAgain().session(), "") << "itself, over a new connection";
  server.Wait(11);
  EXPECT_TRUE(first.TryRegister(second).ok()) << "the first is silent";
  EXPECT_TRUE(absl::IsNotFound(first.Beat()));
}

TEST(LeasingTest, ProcessThatIsKnownToHaveEndedGivesWayAtOnce) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  server.Submit(MakeSpec({kTestWorkload}, 4));
  ASSERT_THAT(worker.Lease(2), SizeIs(2));
  worker.Register();
  EXPECT_THAT(worker.Lease(4), SizeIs(4)) << "with what the dead one held, which nobody is blamed for";
}

// Whether the job, whatever its workers do, comes to its end.
void ExpectItEnds(FakeServer* server, FakeWorker* worker, const std::string& job) {
  for (int turn = 0; turn < 10; ++turn) {
    server->Wait(5);
    EXPECT_TRUE(worker->Beat().ok());
    worker->Work();
  }
  EXPECT_EQ(server->Progress(job).state(), v1::JOB_STATE_DONE);
}

TEST(TakenUpJobTest, ReportMeanwhileComesAgain) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 8));
  const v1::Assignment held = worker.Lease(1).at(0);
  server.HoldReadEnds(true);
  server.Restart();
  worker.RegisterAgain();
  ASSERT_TRUE(worker.Report(held).ok());
  EXPECT_EQ(worker.answer.kind(), v1::ReportAnswer::NOT_NOW) << worker.answer.reason();
  EXPECT_THAT(server.RecordsOf(job), IsEmpty()) << "or what was read of the job is not true any more";
  server.HoldReadEnds(false);
  server.Commit();
  ASSERT_TRUE(worker.Report(held).ok());
  EXPECT_EQ(worker.answer.kind(), v1::ReportAnswer::KEPT) << worker.answer.reason();
  ExpectItEnds(&server, &worker, job);
}

// A job is cancelled and continued. After `held_reads` steps of its reads, a result arrives that was leased
// before the cancellation.
TEST(TakenUpJobTest, LateReportOfACancelledOneThatContinuesComesAgain) {
  for (int held_reads = 0; held_reads < 5; ++held_reads) {
    SCOPED_TRACE(held_reads);
    FakeServer server;
    FakeWorker worker(&server, "w");
    const std::string job = server.Submit(MakeSpec({kTestWorkload}, 8), "s");
    const v1::Assignment held = worker.Lease(1).at(0);
    ASSERT_TRUE(server.Cancel(job).ok());
    v1::SubmitJobRequest again;
    *again.mutable_spec() = MakeSpec({kTestWorkload}, 8);
    again.set_submission("s");
    server->Submit(again, [](const auto& progress) { EXPECT_TRUE(progress.ok()) << progress.status(); });
    for (int read = 0; read < held_reads; ++read) {
      server.HoldReadEnds(false);
      server.HoldReadEnds(true);
      server.Commit();
    }
    ASSERT_TRUE(worker.Report(held).ok());
    server.HoldReadEnds(false);
    server.Commit();
    ExpectItEnds(&server, &worker, job);
  }
}

// The result of a job that has ended is on its way into the log while the job is asked for again.
TEST(TakenUpJobTest, IsReadWhenALateResultIsInTheLog) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 8), "s");
  const v1::Assignment held = worker.Lease(1).at(0);
  ASSERT_TRUE(server.Cancel(job).ok());
  server.HoldWrites(true);
  ASSERT_FALSE(worker.Report(held).ok()) << "no answer yet";
  v1::SubmitJobRequest again;
  *again.mutable_spec() = MakeSpec({kTestWorkload}, 8);
  again.set_submission("s");
  server->Submit(again, [](const auto& progress) { EXPECT_TRUE(progress.ok()) << progress.status(); });
  server.Commit();
  server.HoldWrites(false);
  server.Commit();
  EXPECT_THAT(server.RecordsOf(job), SizeIs(1));
  ExpectItEnds(&server, &worker, job);
  EXPECT_THAT(server.RecordsOf(job), SizeIs(8));
}

TEST(TakenUpJobTest, WorkerThatReturnsBeforeKeepsWhatItHolds) {
  FakeServer server;
  FakeWorker worker(&server, "w"), thief(&server, "thief");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 8));
  const std::vector<v1::Assignment> held = worker.Lease(3);
  ASSERT_THAT(held, SizeIs(3));
  server.HoldReadEnds(true);
  server.Restart();
  EXPECT_THAT(worker.RegisterAgain().lost(), IsEmpty());
  v1::RegisterRequest claim = thief.Registration();
  *claim.add_held() = held[0].lease();
  claim.mutable_held(0)->clear_ticket();
  EXPECT_EQ(thief.TryRegister(claim)->lost_size(), 1);
  ASSERT_TRUE(worker.Beat().ok());
  EXPECT_THAT(worker.instructions.revoked(), IsEmpty());
  server.HoldReadEnds(false);
  server.Commit();
  ASSERT_TRUE(worker.Beat().ok());
  EXPECT_THAT(worker.instructions.revoked(), IsEmpty());
  EXPECT_EQ(server->workers().Devices()[1].leases() + server->workers().Devices()[0].leases(), 3u);
  for (const v1::Assignment& assignment : held) {
    ASSERT_TRUE(worker.Report(assignment).ok());
    EXPECT_EQ(worker.answer.kind(), v1::ReportAnswer::KEPT) << worker.answer.reason();
  }
  ExpectItEnds(&server, &worker, job);
}

}  // namespace
}  // namespace mycc
