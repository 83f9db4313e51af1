// Jobs, workers and leases together, with simulated workers and time.
#include "server/coordinator.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(CoordinatorTest, JobRunsToItsEnd) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload, kOtherWorkload}, 6));
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(worker.Work(), 12);
  const v1::JobProgress progress = server.Progress(job);
  EXPECT_EQ(progress.state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(progress.trials(), 12);
  EXPECT_EQ(progress.trials_planned(), 12);
  ASSERT_EQ(progress.tasks_size(), 2);
  EXPECT_EQ(progress.tasks(0).workload_name(), "gemm");
  EXPECT_EQ(progress.tasks(0).trials(), 6);
  EXPECT_GT(progress.tasks(0).best_seconds(), 0);
  EXPECT_GE(progress.tasks(0).first_seconds(), progress.tasks(0).best_seconds());
  EXPECT_EQ(server.TracesOf(job).size(), 12u);
}

TEST(CoordinatorTest, EqualWorkloadsAreOneTask) {
  FakeServer server;
  const std::string job = server.Submit(MakeSpec({kTestWorkload, kTestWorkload, kOtherWorkload}, 4));
  const v1::JobProgress progress = server.Progress(job);
  ASSERT_EQ(progress.tasks_size(), 2);
  EXPECT_EQ(progress.tasks(0).count(), 2);
}

TEST(CoordinatorTest, LeaseExpiresAndTrialIsRequeued) {
  FakeServer server;
  FakeWorker first(&server, "first"), second(&server, "second");
  server.Submit(MakeSpec({kTestWorkload}, 4));
  const std::vector<v1::Assignment> held = first.Lease(4);
  ASSERT_EQ(held.size(), 4u);
  EXPECT_THAT(second.Lease(4), IsEmpty());
  server.Wait(9);
  EXPECT_THAT(second.Lease(4), IsEmpty());
  server.Wait(2);
  const std::vector<v1::Assignment> again = second.Lease(4);
  ASSERT_EQ(again.size(), 1u) << "suspects come one by one";
  EXPECT_EQ(again[0].lease().attempt(), 2u);
}

TEST(CoordinatorTest, SmallSpaceEndsTheJobBeforeItsTrials) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kOtherWorkload}, 1000));
  EXPECT_LT(worker.Work(), 1000);
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(server.Progress(job).message(), "the spaces hold nothing new");
}

TEST(CoordinatorTest, MessagesRenewWhatTheyName) {
  FakeServer server;
  FakeWorker first(&server, "first"), second(&server, "second");
  server.Submit(MakeSpec({kTestWorkload}, 4));
  ASSERT_EQ(first.Lease(4).size(), 4u);
  for (int i = 0; i < 5; ++i) {
    server.Wait(8);
    EXPECT_TRUE(first.Beat().ok());
    EXPECT_THAT(second.Lease(4), IsEmpty());
  }
}

TEST(CoordinatorTest, LateReportIsIgnored) {
  FakeServer server;
  FakeWorker slow(&server, "slow"), quick(&server, "quick");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 1));
  const v1::Assignment held = slow.Lease(1).at(0);
  server.Wait(11);
  const v1::Assignment again = quick.Lease(1).at(0);
  EXPECT_TRUE(slow.Report(held).ok());
  EXPECT_THAT(slow.ignored, ElementsAre(held.lease().trial()));
  EXPECT_THAT(server.RecordsOf(job), IsEmpty());
  EXPECT_TRUE(quick.Report(again).ok());
  ASSERT_EQ(server.RecordsOf(job).size(), 1u);
  EXPECT_EQ(server.RecordsOf(job)[0].record.attempt(), 2u);
}

TEST(CoordinatorTest, RepeatedReportChangesNothing) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 4));
  const v1::Assignment held = worker.Lease(1).at(0);
  EXPECT_TRUE(worker.Report(held).ok());
  EXPECT_TRUE(worker.Report(held).ok()) << "the first acknowledgement was lost on the way";
  EXPECT_EQ(server.RecordsOf(job).size(), 1u);
  EXPECT_EQ(server.Progress(job).trials(), 1);
}

TEST(CoordinatorTest, JobWaitsForAWorkerThatFits) {
  FakeServer server;
  FakeWorker old(&server, "old", "v1 cpu mcpu=haswell l1d=32K l2=256K threads=2");
  v1::JobSpec spec = MakeSpec({kTestWorkload}, 2);
  spec.set_target("v1 cpu mcpu=sapphirerapids l1d=48K l2=2M threads=2");
  const std::string job = server.Submit(spec);
  EXPECT_THAT(old.Lease(4), IsEmpty());
  EXPECT_THAT(server.Progress(job).message(),
              HasSubstr("waiting for a worker that can run v1 cpu mcpu=sapphirerapids"));
  FakeWorker fit(&server, "fit", spec.target());
  EXPECT_EQ(server.Progress(job).message(), "");
  EXPECT_EQ(fit.Work(), 2);
}

TEST(CoordinatorTest, TasksGoToTheDevicesOfTheirTargets) {
  FakeServer server;
  const std::string newer = "v1 cpu mcpu=sapphirerapids l1d=48K l2=2M threads=2";
  v1::JobSpec spec = MakeSpec({kTestWorkload, kTestWorkload, kTestWorkload}, 8);
  spec.mutable_tasks(1)->set_target(newer);
  const std::string job = server.Submit(spec);
  FakeWorker haswell(&server, "haswell");
  EXPECT_THAT(server.Progress(job).message(),
              HasSubstr("waiting for a worker that can run v1 cpu mcpu=sapphirerapids"));
  haswell.Work();
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_RUNNING);

  FakeWorker sapphire(&server, "sapphire", newer);
  for (const v1::Assignment& assignment : sapphire.Lease(2)) {
    EXPECT_EQ(assignment.target(), newer);
    EXPECT_TRUE(sapphire.Report(assignment).ok());
  }
  // Its worker goes away in the middle, and the server too.
  ASSERT_FALSE(sapphire.Lease(1).empty());
  server.Restart();
  haswell.Register();
  sapphire.Register();
  for (int round = 0; round < 10; ++round) {
    haswell.Work();
    sapphire.Work();
  }
  const v1::JobProgress progress = server.Progress(job);
  EXPECT_EQ(progress.state(), v1::JOB_STATE_DONE);
  ASSERT_EQ(progress.tasks_size(), 2) << "equal workloads for one target are one task";
  EXPECT_EQ(progress.tasks(0).count(), 2);
  EXPECT_EQ(progress.tasks(1).target(), newer);
  std::map<std::string, int> records;
  for (const StoredRecord& record : server.RecordsOf(job)) ++records[record.record.target()];
  EXPECT_THAT(records,
              ::testing::UnorderedElementsAre(::testing::Pair(kTestTarget, 8), ::testing::Pair(newer, 8)));
}

TEST(CoordinatorTest, WithoutAProtocolEachTargetHasItsUsualOne) {
  FakeServer server;
  const std::string gpu = "v1 cuda arch=sm_90a model=\"NVIDIA H200\" sms=132 smem=232448 l2=60M";
  v1::JobSpec spec = MakeSpec({kTestWorkload, kTestWorkload}, 4);
  spec.clear_protocol();
  spec.mutable_tasks(1)->set_target(gpu);
  server.Submit(spec);
  FakeWorker haswell(&server, "haswell"), h200(&server, "h200", gpu);
  const std::vector<v1::Assignment> warm = haswell.Lease(1), cold = h200.Lease(1);
  ASSERT_EQ(warm.size(), 1u);
  ASSERT_EQ(cold.size(), 1u);
  EXPECT_EQ(warm[0].protocol(), v1::TIMING_PROTOCOL_WARM);
  EXPECT_EQ(cold[0].protocol(), v1::TIMING_PROTOCOL_COLD);
}

TEST(CoordinatorTest, ProgressSaysWhatEachDeviceDid) {
  FakeServer server;
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 4));
  FakeWorker worker(&server, "w");
  for (const v1::Assignment& assignment : worker.Lease(2)) {
    v1::MeasureResult result = FakeResult(assignment);
    result.mutable_device()->set_worker("w");
    result.mutable_timing()->set_run_seconds(1.5);
    EXPECT_TRUE(worker.Report(assignment, result).ok());
  }
  server.Restart();
  const v1::JobProgress progress = server.Progress(job);
  ASSERT_EQ(progress.devices_size(), 1);
  EXPECT_EQ(progress.devices(0).worker(), "w");
  EXPECT_EQ(progress.devices(0).device(), "cpu");
  EXPECT_EQ(progress.devices(0).trials(), 2);
  EXPECT_DOUBLE_EQ(progress.devices(0).run_seconds(), 3);
}

TEST(CoordinatorTest, JobsShareTheWorkers) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string a = server.Submit(MakeSpec({kTestWorkload}, 8));
  const std::string b = server.Submit(MakeSpec({kOtherWorkload}, 8));
  const std::vector<v1::Assignment> held = worker.Lease(4);
  int of_a = 0;
  for (const v1::Assignment& assignment : held) of_a += assignment.lease().trial().rfind(a, 0) == 0;
  EXPECT_EQ(of_a, 2);
  for (const v1::Assignment& assignment : held) EXPECT_TRUE(worker.Report(assignment).ok());
  worker.Work();
  EXPECT_EQ(server.Progress(a).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(server.Progress(b).state(), v1::JOB_STATE_DONE);
}

// It is for the final round too, which is given 2 s a task of it.
TEST(CoordinatorTest, BudgetEndsTheJob) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  v1::JobSpec spec = MakeSpec({kTestWorkload}, 0);
  spec.set_budget_seconds(60);
  const std::string job = server.Submit(spec);
  for (const v1::Assignment& assignment : worker.Lease(3)) EXPECT_TRUE(worker.Report(assignment).ok());
  server.Wait(57.5);
  EXPECT_THAT(server.Progress(job).message(), Not(HasSubstr("budget")));
  server.Wait(1);
  worker.Register();
  EXPECT_EQ(worker.Work(), 0) << "nothing but a final round";
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(server.Progress(job).message(), "the time budget is spent");
  v1::JobSpec many = spec;
  EXPECT_EQ(SearchSeconds(many, 1), 58);
  EXPECT_EQ(SearchSeconds(many, 100), 45) << "a quarter of it at most";
  many.set_budget_seconds(0);
  EXPECT_EQ(SearchSeconds(many, 1), 0) << "no limit";
}

TEST(CoordinatorTest, LogThatHoldsEnoughIsReused) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  server.Submit(MakeSpec({kTestWorkload}, 8));
  worker.Work();
  const v1::JobProgress enough = server.Progress(server.Submit(MakeSpec({kTestWorkload}, 6, /*seed=*/9)));
  EXPECT_EQ(enough.state(), v1::JOB_STATE_DONE);
  EXPECT_TRUE(enough.tasks(0).reused());
  EXPECT_GT(enough.tasks(0).best_seconds(), 0);
  EXPECT_THAT(enough.message(), HasSubstr("already had"));
  const v1::JobProgress partly = server.Progress(server.Submit(MakeSpec({kTestWorkload, kOtherWorkload}, 6)));
  EXPECT_EQ(partly.state(), v1::JOB_STATE_RUNNING);
  EXPECT_TRUE(partly.tasks(0).reused());
  EXPECT_FALSE(partly.tasks(1).reused());
  EXPECT_EQ(worker.Work(), 6);
  const v1::JobProgress done = server.Progress(partly.job());
  ASSERT_GE(done.milestones_size(), 1) << "the task that was not searched has a time, too";
  EXPECT_GT(done.milestones(0).latency_seconds(), done.tasks(0).best_seconds());
}

TEST(CoordinatorTest, MisuseIsRefusedInWords) {
  FakeServer server;
  const auto refusal = [&server](const std::function<void(v1::JobSpec*)>& spoil) {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = MakeSpec({kTestWorkload}, 4);
    spoil(request.mutable_spec());
    const absl::Status status = AnswerOf<v1::JobProgress>(&server, [&](const JobReply& reply) {
                                  server->Submit(request, reply);
                                }).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal([](v1::JobSpec* spec) { spec->clear_tasks(); }), HasSubstr("no workload"));
  EXPECT_THAT(refusal([](v1::JobSpec* spec) { spec->set_target("v1 gpu"); }), HasSubstr("gpu"));
  EXPECT_THAT(refusal([](v1::JobSpec* spec) { spec->set_strategy("guess"); }), HasSubstr("guess"));
  EXPECT_THAT(refusal([](v1::JobSpec* spec) { spec->set_trials(0); }),
              HasSubstr("neither trials nor a budget"));
  EXPECT_THAT(refusal([](v1::JobSpec* spec) { spec->mutable_tasks(0)->set_workload("workload ("); }),
              HasSubstr("workload 1:1:"));
  EXPECT_TRUE(absl::IsNotFound(server.TryProgress("j0123456789abcdef").status()));
}

}  // namespace
}  // namespace mycc
