// Workers that die, leave or are unfit, and what their trials are charged with.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordinator.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::MeasureResult Lost(const std::string& error = "killed") {
  v1::MeasureResult result;
  result.set_status(v1::MEASURE_STATUS_WORKER_LOST);
  result.set_error(error);
  result.mutable_device()->set_device("cpu");
  return result;
}

TEST(LostWorkerTest, LostTrialIsNotChargedToTheCandidate) {
  FakeServer server;
  FakeWorker first(&server, "first"), second(&server, "second");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 1));
  EXPECT_TRUE(first.Report(first.Lease(1).at(0), Lost()).ok());
  EXPECT_THAT(server.RecordsOf(job), IsEmpty());
  EXPECT_EQ(second.Work(), 1);
  ASSERT_EQ(server.RecordsOf(job).size(), 1u);
  EXPECT_EQ(server.RecordsOf(job)[0].record.result().status(), v1::MEASURE_STATUS_OK);
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
}

TEST(LostWorkerTest, PoisonCandidateIsQuarantinedWithItsEvidence) {
  FakeServer server;
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 4));
  FakeWorker survivor(&server, "survivor");
  // Workers that are lost with the first trial they take, whatever else they hold.
  std::string poison;
  for (int i = 0; i < 3; ++i) {
    FakeWorker victim(&server, "victim" + std::to_string(i));
    const std::vector<v1::Assignment> held = victim.Lease(3);
    ASSERT_FALSE(held.empty());
    if (poison.empty()) poison = held[0].lease().trial();
    ASSERT_EQ(held[0].lease().trial(), poison);
    server.Wait(11);
  }
  survivor.Register();
  survivor.Work();
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
  int quarantined = 0;
  for (const StoredRecord& record : server.RecordsOf(job)) {
    if (record.record.result().status() == v1::MEASURE_STATUS_OK) continue;
    ++quarantined;
    EXPECT_EQ(record.record.trial(), poison);
    EXPECT_EQ(record.record.result().status(), v1::MEASURE_STATUS_WORKER_LOST)
        << "what took the workers is not known";
    EXPECT_THAT(record.record.result().error(), HasSubstr("quarantined: 3 workers were lost"));
    EXPECT_THAT(record.record.result().reproduction(), HasSubstr("mycc-tune measure"));
    EXPECT_THAT(record.record.result().error(), HasSubstr("victim0"));
    EXPECT_THAT(record.record.result().error(), HasSubstr("victim2"));
  }
  EXPECT_EQ(quarantined, 1) << "the innocent trials that died with it were measured";
}

TEST(LostWorkerTest, WorkerDoesNotSayWhatItsTimesRankBy) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 1));
  const v1::Assignment held = worker.Lease(1).at(0);
  v1::MeasureResult result = FakeResult(held);
  result.mutable_timing()->set_rank_seconds(1e-9);
  result.mutable_timing()->set_final_round("of its own");
  EXPECT_TRUE(worker.Report(held, result).ok());
  ASSERT_EQ(server.RecordsOf(job).size(), 1u);
  EXPECT_EQ(server.RecordsOf(job)[0].record.result().timing().rank_seconds(), 0);
}

TEST(LostWorkerTest, UnverifiedTimeIsNoResult) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 1));
  const v1::Assignment held = worker.Lease(1).at(0);
  v1::MeasureResult result = FakeResult(held);
  result.clear_verification();
  EXPECT_TRUE(worker.Report(held, result).ok());
  EXPECT_EQ(server.Progress(job).tasks(0).best_seconds(), 0);
}

TEST(LostWorkerTest, WorkerThatLeavesReturnsItsTrialsUnblamed) {
  FakeServer server;
  FakeWorker leaver(&server, "leaver"), other(&server, "other");
  server.Submit(MakeSpec({kTestWorkload}, 4));
  ASSERT_EQ(leaver.Lease(3).size(), 3u);
  EXPECT_TRUE(leaver.Leave().ok());
  EXPECT_EQ(other.Lease(4).size(), 4u) << "not as suspects";
  EXPECT_TRUE(absl::IsNotFound(leaver.Leave()));
}

TEST(LostWorkerTest, WorkerStartedAgainLosesWhatItHeld) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  server.Submit(MakeSpec({kTestWorkload}, 4));
  const std::vector<v1::Assignment> held = worker.Lease(2);
  const std::string before = worker.session;
  worker.Register();
  EXPECT_NE(worker.session, before);
  EXPECT_EQ(worker.Lease(1).size(), 1u) << "at once, not when the lease runs out";
  EXPECT_EQ(held.size(), 2u);
}

TEST(LostWorkerTest, WorkerKilledOnAHealthyHostIsNotTheCandidates) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 4));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(worker.Lease(2).size(), 2u) << "they are no suspects";
    if (i % 2 == 1) server.Restart();
    worker.Register();
  }
  EXPECT_EQ(worker.Work(), 4);
  for (const StoredRecord& record : server.RecordsOf(job))
    EXPECT_EQ(record.record.result().status(), v1::MEASURE_STATUS_OK);
}

TEST(LostWorkerTest, HostThatGoesDownAgainAndAgainIsEvidence) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 1));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(worker.Lease(1).size(), 1u);
    if (i < 2) worker.host.set_boot("boot " + std::to_string(i));
    if (i == 2) worker.host.set_memory_kills(1);
    worker.Register();
  }
  ASSERT_EQ(server.RecordsOf(job).size(), 1u);
  EXPECT_THAT(server.RecordsOf(job)[0].record.result().error(),
              HasSubstr("attempt 1: worker w was started again, as was its host"));
  EXPECT_THAT(server.RecordsOf(job)[0].record.result().error(),
              HasSubstr("attempt 3: worker w was started again after its host had run out"));
}

TEST(LostWorkerTest, WorkerThatEndsWithEveryAttemptIsEvidenceInTheEnd) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 1));
  int attempts = 0;
  for (; attempts < 100 && !worker.Lease(1).empty(); ++attempts) worker.Register();
  EXPECT_EQ(attempts, 12) << "uncharged, then three times charged";
  ASSERT_EQ(server.RecordsOf(job).size(), 1u);
  EXPECT_EQ(server.RecordsOf(job)[0].record.result().status(), v1::MEASURE_STATUS_WORKER_LOST);
}

TEST(LostWorkerTest, UnknownSessionIsToldToRegister) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  worker.session = "s-of-before";
  EXPECT_TRUE(absl::IsNotFound(worker.Beat()));
  EXPECT_TRUE(absl::IsNotFound(worker.TryLease(1).status()));
}

TEST(LostWorkerTest, DeviceThatLosesEverythingIsDrained) {
  FakeServer server;
  FakeWorker bad(&server, "bad");
  server.Submit(MakeSpec({kTestWorkload}, 12));
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(bad.Report(bad.Lease(1).at(0), Lost("device fell off the bus")).ok());
  EXPECT_THAT(bad.Lease(1), IsEmpty());
  EXPECT_THAT(bad.instructions.drain(), HasSubstr("device fell off the bus"));
  ASSERT_EQ(server->workers().Devices().size(), 1u);
  EXPECT_EQ(server->workers().Devices()[0].state(), "draining");
  // Now and then it may show that it has recovered.
  server.Wait(31);
  bad.Register();
  EXPECT_EQ(bad.Lease(1).size(), 1u);
}

TEST(LostWorkerTest, SlowDeviceIsDrainedWhenThereIsABetterOne) {
  FakeServer server;
  FakeWorker slow(&server, "slow");
  server.Submit(MakeSpec({kTestWorkload}, 200));
  const auto measure = [&slow](int count, double baseline) {
    for (int i = 0; i < count; ++i) {
      const std::vector<v1::Assignment> held = slow.Lease(1);
      if (held.empty()) return i;
      v1::MeasureResult result = FakeResult(held[0]);
      result.mutable_timing()->set_baseline_seconds(baseline);
      EXPECT_TRUE(slow.Report(held[0], result).ok());
    }
    return count;
  };
  EXPECT_EQ(measure(20, 1e-3), 20);
  EXPECT_EQ(measure(10, 2e-3), 10) << "a slow device is better than none";
  FakeWorker healthy(&server, "healthy");
  EXPECT_EQ(measure(10, 2e-3), 1) << "and worse than a healthy one";
  EXPECT_THAT(slow.instructions.drain(), HasSubstr("baseline"));
}

}  // namespace
}  // namespace mycc
