// Build-only workers beside those that measure: who builds what, who is blamed, and what survives.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fake_builder.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint32_t kTrials = 8;

// A worker with a GPU.
class FakeGpu : public FakeWorker {
 public:
  FakeGpu(FakeServer* server, const std::string& name, v1::WorkerRole role = v1::WORKER_ROLE_BOTH)
      : FakeWorker(server, name, kGpuTestTarget), server_(server) {
    v1::RegisterRequest request = Registration();
    request.set_role(role);
    session = TryRegister(request)->session();
  }
  absl::StatusOr<std::string> Fetch(const std::string& digest) {
    v1::FetchArtifactRequest request;
    request.set_session(session);
    request.set_digest(digest);
    const auto response = AnswerOf<v1::FetchArtifactResponse>(
        server_, [&](const auto& reply) { (*server_)->workers().FetchArtifact(request, reply); });
    if (!response.ok()) return response.status();
    return response->artifact();
  }

 private:
  FakeServer* const server_;
};

v1::DeviceStatus StatusOf(FakeServer& server, const std::string& worker) {
  for (const v1::DeviceStatus& status : server->workers().Devices()) {
    if (status.worker() == worker) return status;
  }
  ADD_FAILURE() << "no worker " << worker;
  return {};
}

v1::MeasureStatus StatusOfTrial(FakeServer& server, const std::string& job, const std::string& order) {
  for (const StoredRecord& stored : server.RecordsOf(job)) {
    if ("build " + stored.record.trial() == order) return stored.record.result().status();
  }
  return v1::MEASURE_STATUS_UNSPECIFIED;
}

// Lets a builder show that it can build.
void Prove(FakeBuilder* builder) {
  const std::vector<v1::BuildOrder> orders = builder->Lease(1);
  ASSERT_THAT(orders, SizeIs(1));
  ASSERT_EQ(builder->Report(FakeBuilder::Built(orders[0])).kind(), v1::ReportAnswer::KEPT);
}

TEST(BuildFarmTest, WithoutBuildersDevicesBuildWhatTheyMeasure) {
  FakeServer server;
  FakeGpu both(&server, "both"), measure(&server, "measure", v1::WORKER_ROLE_MEASURE);
  server.Submit(GpuSpec(kTrials));
  const std::vector<v1::Assignment> own = both.Lease(2), others = measure.Lease(2);
  ASSERT_THAT(own, SizeIs(2));
  ASSERT_THAT(others, SizeIs(2)) << "nobody builds for it";
  EXPECT_EQ(own[0].artifact(), "");
  EXPECT_THAT(StatusOf(server, "measure").trouble(), HasSubstr("no worker builds for sm_90a"));
}

TEST(BuildFarmTest, WhatWasBuiltIsLeasedWithItsDigest) {
  FakeServer server;
  FakeBuilder builder(&server, "builder");
  FakeGpu gpu(&server, "gpu", v1::WORKER_ROLE_MEASURE);
  const std::string job = server.Submit(GpuSpec(kTrials));
  const std::vector<v1::BuildOrder> orders = builder.Lease(2);
  ASSERT_THAT(orders, SizeIs(2));
  EXPECT_THAT(gpu.Lease(4), IsEmpty()) << "it waits for the builder";
  const v1::BuildReport built = FakeBuilder::Built(orders[1]);
  EXPECT_EQ(builder.Report(built).kind(), v1::ReportAnswer::KEPT);
  const std::vector<v1::Assignment> leased = gpu.Lease(4);
  ASSERT_THAT(leased, SizeIs(1));
  EXPECT_EQ("build " + leased[0].lease().trial(), orders[1].lease().trial());
  EXPECT_EQ(leased[0].artifact(), Sha256Hex(built.artifact()));
  EXPECT_EQ(gpu.Fetch(leased[0].artifact()).value(), built.artifact());
  EXPECT_TRUE(absl::IsFailedPrecondition(gpu.Fetch(std::string(64, '0')).status()));
  EXPECT_TRUE(gpu.Report(leased[0]).ok());
  EXPECT_EQ(builder.Report(FakeBuilder::Built(orders[0])).kind(), v1::ReportAnswer::KEPT);
  EXPECT_EQ(builder.Work() + 2, static_cast<int>(kTrials));
  gpu.Work();
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
  EXPECT_THAT(server.TracesOf(job), SizeIs(kTrials));
  const v1::DeviceStatus status = StatusOf(server, "builder");
  EXPECT_EQ(status.builds(), kTrials);
  EXPECT_EQ(status.target(), "sm_90a");
  EXPECT_EQ(status.role(), v1::WORKER_ROLE_BUILD);
}

// Builders share their work among jobs as devices do.
TEST(BuildFarmTest, TheMostUrgentJobIsBuiltForFirst) {
  FakeServer server;
  FakeBuilder builder(&server, "builder");
  const auto submit = [&](uint64_t seed, int priority, bool only_when_idle) {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = GpuSpec(kTrials);
    request.mutable_spec()->set_seed(seed);
    request.mutable_spec()->set_fresh(true);
    request.mutable_spec()->set_only_when_idle(only_when_idle);
    request.set_priority(priority);
    return server.TrySubmit(request)->job();
  };
  const auto count = [](const std::vector<v1::BuildOrder>& orders, const std::string& job) {
    return std::ranges::count_if(
        orders, [&](const v1::BuildOrder& order) { return absl::StrContains(order.lease().trial(), job); });
  };
  const std::string idle = submit(1, 0, true), low = submit(2, 0, false), high = submit(3, 5, false);
  EXPECT_EQ(count(builder.Lease(kTrials), high), kTrials);
  EXPECT_EQ(count(builder.Lease(kTrials), low), kTrials);
  EXPECT_EQ(count(builder.Lease(kTrials), idle), kTrials) << "a builder is soon free again";
}

TEST(BuildFarmTest, ADeviceThatBuildsTakesWhatNobodyIsAt) {
  FakeServer server;
  FakeBuilder builder(&server, "builder");
  FakeGpu gpu(&server, "gpu");
  server.Submit(GpuSpec(kTrials));
  ASSERT_THAT(builder.Lease(6), SizeIs(6));
  EXPECT_THAT(gpu.Lease(kTrials), SizeIs(kTrials - 6));
  EXPECT_THAT(builder.Lease(kTrials), IsEmpty()) << "the device is at them";
  EXPECT_THAT(gpu.Lease(kTrials), IsEmpty());
}

TEST(BuildFarmTest, NoDeviceWaitsForABuilderThatDied) {
  FakeServer server;
  FakeBuilder builder(&server, "builder");
  FakeGpu both(&server, "both"), measure(&server, "measure", v1::WORKER_ROLE_MEASURE);
  server.Submit(GpuSpec(kTrials));
  ASSERT_THAT(builder.Lease(kTrials), SizeIs(kTrials));
  EXPECT_THAT(both.Lease(4), IsEmpty());
  for (int i = 0; i < 4; ++i) {
    server.Wait(6);  // the builder is silent
    EXPECT_TRUE(both.Beat().ok() && measure.Beat().ok());
  }
  EXPECT_THAT(both.Lease(4), SizeIs(4));
  EXPECT_THAT(measure.Lease(8), SizeIs(4));
  EXPECT_THAT(StatusOf(server, "measure").trouble(), HasSubstr("it builds itself"));
}

TEST(BuildFarmTest, AFailedBuildEndsItsTrialWithoutADevice) {
  FakeServer server;
  FakeBuilder builder(&server, "builder");
  const std::string job = server.Submit(GpuSpec(kTrials));
  Prove(&builder);
  const std::vector<v1::BuildOrder> orders = builder.Lease(2);
  ASSERT_THAT(orders, SizeIs(2));
  EXPECT_EQ(builder.Report(FakeBuilder::Failed(orders[0])).kind(), v1::ReportAnswer::KEPT);
  EXPECT_EQ(StatusOfTrial(server, job, orders[0].lease().trial()), v1::MEASURE_STATUS_BUILD_ERROR);
  const std::vector<StoredRecord> records = server.RecordsOf(job);
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].record.result().device().worker(), "builder");
  EXPECT_THAT(records[0].record.result().reproduction(), HasSubstr("mycc-tune measure"));
  EXPECT_EQ(server.Progress(job).trials(), 1u);
}

TEST(BuildFarmTest, ATimeThatCannotBeIsNotKept) {
  FakeServer server;
  FakeBuilder builder(&server, "builder");
  const std::string job = server.Submit(GpuSpec(kTrials));
  for (const double seconds : {std::numeric_limits<double>::infinity(), 1e300, -1.0, std::nan("")}) {
    Prove(&builder);  // so that its failures are believed
    v1::BuildReport report = FakeBuilder::Failed(builder.Lease(1).at(0));
    report.set_build_seconds(seconds);
    EXPECT_EQ(builder.Report(report).kind(), v1::ReportAnswer::KEPT);
  }
  const std::vector<StoredRecord> records = server.RecordsOf(job);
  ASSERT_THAT(records, SizeIs(4));
  for (const StoredRecord& stored : records) {
    const v1::MeasureResult& result = stored.record.result();
    EXPECT_GE(result.timing().build_seconds(), 0);
    EXPECT_LE(result.timing().build_seconds(), 86400);
    EXPECT_LE(result.started_unix_micros(), result.finished_unix_micros());
  }
}

TEST(BuildFarmTest, TheFailureOfABuilderWithoutProofIsTriedElsewhere) {
  FakeServer server;
  FakeBuilder broken(&server, "broken"), sound(&server, "sound");
  const std::string job = server.Submit(GpuSpec(kTrials));
  for (int i = 0; i < 2; ++i) {
    const std::vector<v1::BuildOrder> orders = broken.Lease(1);
    ASSERT_THAT(orders, SizeIs(1));
    EXPECT_EQ(broken.Report(FakeBuilder::Failed(orders[0])).kind(), v1::ReportAnswer::IGNORED);
    const std::vector<v1::BuildOrder> again = sound.Lease(1);
    ASSERT_THAT(again, SizeIs(1));
    EXPECT_EQ(again[0].lease().trial(), orders[0].lease().trial());
    EXPECT_EQ(again[0].lease().attempt(), 2u);
    EXPECT_EQ(sound.Report(FakeBuilder::Built(again[0])).kind(), v1::ReportAnswer::KEPT);
  }
  EXPECT_THAT(server.RecordsOf(job), IsEmpty());
  EXPECT_EQ(StatusOf(server, "broken").state(), "draining");
  EXPECT_THAT(StatusOf(server, "broken").reason(), HasSubstr("sound has built"));
  EXPECT_THAT(broken.Lease(1), IsEmpty());
}

TEST(BuildFarmTest, WhereThereIsNoOtherBuilderTheDeviceTries) {
  FakeServer server;
  FakeBuilder builder(&server, "builder");
  FakeGpu gpu(&server, "gpu", v1::WORKER_ROLE_MEASURE);
  const std::string job = server.Submit(GpuSpec(kTrials));
  const std::vector<v1::BuildOrder> orders = builder.Lease(1);
  EXPECT_EQ(builder.Report(FakeBuilder::Failed(orders[0])).kind(), v1::ReportAnswer::IGNORED);
  const std::vector<v1::Assignment> leased = gpu.Lease(4);
  ASSERT_THAT(leased, SizeIs(1));
  EXPECT_EQ("build " + leased[0].lease().trial(), orders[0].lease().trial());
  EXPECT_EQ(leased[0].artifact(), "");
}

TEST(BuildFarmTest, AnUnfitBuilderBlamesNobodyAndIsGivenUp) {
  FakeServer server;
  FakeBuilder builder(&server, "builder");
  FakeGpu gpu(&server, "gpu", v1::WORKER_ROLE_MEASURE);
  const std::string job = server.Submit(GpuSpec(kTrials));
  for (int i = 0; i < 3; ++i) {
    const std::vector<v1::BuildOrder> orders = builder.Lease(1);
    ASSERT_THAT(orders, SizeIs(1)) << i;
    const v1::BuildReport unfit = FakeBuilder::Failed(orders[0], v1::MEASURE_STATUS_WORKER_UNFIT);
    EXPECT_EQ(builder.Report(unfit).kind(), v1::ReportAnswer::KEPT);
  }
  EXPECT_THAT(server.RecordsOf(job), IsEmpty());
  EXPECT_EQ(StatusOf(server, "builder").state(), "draining") << "it lost three in a row";
  EXPECT_THAT(gpu.Lease(kTrials), SizeIs(kTrials)) << "no builder works";
}

TEST(BuildFarmTest, BuildersThatDieWithAnOrderTriceGiveItToTheDevice) {
  FakeServer server;
  FakeGpu gpu(&server, "gpu", v1::WORKER_ROLE_MEASURE);
  const std::string job = server.Submit(GpuSpec(kTrials));
  FakeBuilder alive(&server, "alive");
  ASSERT_THAT(alive.Lease(kTrials - 1), SizeIs(kTrials - 1));
  for (int i = 0; i < 3; ++i) {
    FakeBuilder dying(&server, "dying" + std::to_string(i));
    ASSERT_THAT(dying.Lease(1), SizeIs(1)) << i;
    for (int beat = 0; beat < 5; ++beat) {
      server.Wait(6);
      EXPECT_TRUE(gpu.Beat().ok() && alive.Beat().ok());
    }
  }
  alive.Lease(0);
  EXPECT_THAT(gpu.Lease(kTrials), SizeIs(1));
  EXPECT_THAT(server.RecordsOf(job), IsEmpty());
}

TEST(BuildFarmTest, HostileBuildsAreRefusedInWordsAndCounted) {
  FakeServer server;
  FakeBuilder builder(&server, "builder"), other(&server, "other");
  server.Submit(GpuSpec(kTrials));
  const std::vector<v1::BuildOrder> orders = builder.Lease(3);
  ASSERT_THAT(orders, SizeIs(3));
  v1::BuildReport beyond = FakeBuilder::Built(orders[0]);
  const Workload workload = ParseWorkload(orders[0].workload(), "order").value();
  Portable portable = AnyPortable(workload, ParseTarget(kGpuTestTarget).value(), beyond.code_digest());
  portable.program.call[0].pointers[0].argument = 7;
  beyond.set_artifact(SerializePortable(portable));
  EXPECT_THAT(builder.Report(beyond).reason(), HasSubstr("argument 7 of a function with 2"));
  v1::BuildReport text = FakeBuilder::Built(orders[1]);
  text.set_artifact(".version 8.0\n.target sm_90a");
  EXPECT_EQ(builder.Report(text).kind(), v1::ReportAnswer::REFUSED);
  v1::BuildReport forged = FakeBuilder::Built(orders[2]);
  forged.mutable_lease()->set_ticket("0123456789abcdef0123456789abcdef");
  EXPECT_THAT(other.Report(forged).reason(), HasSubstr("ticket"));
  EXPECT_EQ(StatusOf(server, "builder").refused(), 2);
  EXPECT_EQ(StatusOf(server, "other").refused(), 1);
}

TEST(BuildFarmTest, ADeviceAsksForNoBuildsAndABuilderHasNoDevice) {
  FakeServer server;
  FakeBuilder builder(&server, "builder");
  FakeGpu gpu(&server, "gpu");
  const std::string own = std::exchange(builder.session, gpu.session);
  EXPECT_TRUE(absl::IsFailedPrecondition(builder.TryLease(1).status()));
  builder.session = own;
  v1::RegisterRequest request = builder.Registration();
  *request.add_devices() = gpu.devices[0];
  EXPECT_TRUE(absl::IsInvalidArgument(builder.TryRegister(request).status()));
  request = builder.Registration();
  request.clear_build_targets();
  EXPECT_TRUE(absl::IsInvalidArgument(builder.TryRegister(request).status()));
  request.add_build_targets(kTestTarget);
  EXPECT_THAT(builder.TryRegister(request).status().message(), HasSubstr("built where they are measured"));
}

TEST(BuildFarmTest, ARestartedServerBuildsNothingTwice) {
  FakeServer server;
  FakeBuilder builder(&server, "builder");
  const std::string job = server.Submit(GpuSpec(kTrials));
  const std::vector<v1::BuildOrder> done = builder.Lease(3), under_way = builder.Lease(2);
  for (const v1::BuildOrder& order : done)
    EXPECT_EQ(builder.Report(FakeBuilder::Built(order)).kind(), v1::ReportAnswer::KEPT);
  server.Restart();
  builder.Register();
  EXPECT_EQ(builder.Report(FakeBuilder::Built(under_way[0])).kind(), v1::ReportAnswer::KEPT)
      << "it was paid for";
  EXPECT_EQ(builder.Work(), static_cast<int>(kTrials) - 4);
  FakeGpu gpu(&server, "gpu");
  const std::vector<v1::Assignment> leased = gpu.Lease(kTrials);
  EXPECT_THAT(leased, SizeIs(2)) << "others may be waiting for the rest";
  for (const v1::Assignment& assignment : leased) EXPECT_NE(assignment.artifact(), "");
  for (const v1::Assignment& assignment : leased) EXPECT_TRUE(gpu.Report(assignment).ok());
  EXPECT_EQ(gpu.Work(), static_cast<int>(kTrials) - 2);
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
}

TEST(BuildFarmTest, AnEqualCandidateOfAnotherJobIsNotBuiltAgain) {
  FakeServer server;
  FakeBuilder builder(&server, "builder");
  server.Submit(GpuSpec(kTrials));
  EXPECT_EQ(builder.Work(), static_cast<int>(kTrials));
  v1::JobSpec again = GpuSpec(kTrials);
  again.set_name("again");
  server.Submit(again, "another submission");
  EXPECT_LT(builder.Work(), static_cast<int>(kTrials));
}

TEST(BuildFarmTest, AFailureOnADeviceIsTheBuildersUntilItsCodeHasRun) {
  FakeServer server;
  FakeBuilder builder(&server, "builder");
  FakeGpu gpu(&server, "gpu");
  server.Submit(GpuSpec(kTrials));
  EXPECT_EQ(builder.Work(), static_cast<int>(kTrials));
  v1::MeasureResult wrong;
  wrong.set_status(v1::MEASURE_STATUS_RUN_ERROR);
  std::vector<v1::Assignment> leased = gpu.Lease(1);
  ASSERT_THAT(leased, SizeIs(1));
  EXPECT_TRUE(gpu.Report(leased[0], wrong).ok());
  EXPECT_EQ(gpu.answer.kind(), v1::ReportAnswer::IGNORED);
  std::vector<v1::Assignment> own;
  for (uint32_t i = 0; i < kTrials / 2; ++i) {
    for (v1::Assignment& assignment : gpu.Lease(2)) own.push_back(std::move(assignment));
  }
  const auto again = std::ranges::find_if(own, [&](const v1::Assignment& assignment) {
    return assignment.lease().trial() == leased[0].lease().trial();
  });
  ASSERT_NE(again, own.end());
  EXPECT_EQ(again->artifact(), "") << "it builds that itself";
  for (const v1::Assignment& assignment : own) {
    if (assignment.artifact().empty()) continue;
    EXPECT_TRUE(gpu.Report(assignment).ok());
    EXPECT_EQ(gpu.answer.kind(), v1::ReportAnswer::KEPT);
  }
  EXPECT_TRUE(gpu.Report(*again, wrong).ok());
  EXPECT_EQ(gpu.answer.kind(), v1::ReportAnswer::KEPT) << "it fails wherever it is built";
}

TEST(BuildFarmTest, ACancelledJobsOrdersAreRevoked) {
  FakeServer server;
  FakeBuilder builder(&server, "builder");
  const std::string job = server.Submit(GpuSpec(kTrials));
  const std::vector<v1::BuildOrder> orders = builder.Lease(2);
  ASSERT_THAT(orders, SizeIs(2));
  ASSERT_TRUE(server.Cancel(job).ok());
  EXPECT_TRUE(builder.Beat().ok());
  EXPECT_THAT(builder.held, IsEmpty());
  EXPECT_THAT(builder.Lease(4), IsEmpty());
  EXPECT_EQ(builder.Report(FakeBuilder::Built(orders[0])).kind(), v1::ReportAnswer::IGNORED);
}

TEST(BuildFarmTest, AServerStartsWithoutABuildFolderThatItCannotRead) {
  FakeServer server;
  ASSERT_TRUE(std::filesystem::create_directories(server.log().path() + ".artifacts/index"));
  server.Restart();
  FakeGpu gpu(&server, "gpu");
  server.Submit(GpuSpec(kTrials));
  EXPECT_THAT(gpu.Lease(4), SizeIs(4));
}

TEST(BuildFarmTest, AFullDiskOfTheServerLetsDevicesBuild) {
  FakeServer server;
  FakeBuilder builder(&server, "builder");
  FakeGpu gpu(&server, "gpu", v1::WORKER_ROLE_MEASURE);
  server.Submit(GpuSpec(kTrials));
  const std::vector<v1::BuildOrder> orders = builder.Lease(1);
  // In the folder's place there is a file.
  ASSERT_TRUE(WriteFileAtomically(server.log().path() + ".artifacts", "a file").ok());
  EXPECT_EQ(builder.Report(FakeBuilder::Built(orders[0])).kind(), v1::ReportAnswer::IGNORED);
  EXPECT_THAT(gpu.Lease(4), SizeIs(1));
}

}  // namespace
}  // namespace mycc
