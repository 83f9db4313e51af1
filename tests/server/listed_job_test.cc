// Jobs of given candidates: those that a client lists, and the foreign records of the log.
#include "server/listed_job.h"

#include "db/foreign_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/names.h"
#include "tests/db/test_log.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::string TraceOf(int n) { return "v1\nsplit(t0.a0, [" + std::to_string(n) + "])\n"; }

class ListedJobTest : public ::testing::Test {
 protected:
  static v1::JobSpec Listed(const std::vector<std::string>& candidates) {
    v1::JobSpec spec = MakeSpec({kTestWorkload}, 0);
    spec.set_strategy("listed");
    for (const std::string& trace : candidates) spec.mutable_tasks(0)->add_candidates(trace);
    return spec;
  }
  static v1::JobSpec Foreign(uint32_t of_each = 0) {
    v1::JobSpec spec;
    spec.set_strategy("foreign");
    spec.set_protocol(v1::TIMING_PROTOCOL_WARM);
    spec.set_trials(of_each);
    spec.set_fresh(true);
    return spec;
  }
  std::string Refusal(const v1::JobSpec& spec) {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = spec;
    const auto answer =
        AnswerOf<v1::JobProgress>(&server_, [&](const JobReply& reply) { server_->Submit(request, reply); });
    EXPECT_FALSE(answer.ok());
    return std::string(answer.status().message());
  }
  void AddForeign(const std::string& workload, const std::string& trace, double seconds,
                  const std::string& target = kTestTarget) {
    const PlannedTask task = PlanJob(MakeSpec({workload}, 1))->tasks[0];
    v1::Record record =
        MakeRecord({.index = ++records_, .target = target, .seconds = seconds, .trace = trace});
    record.set_workload(task.key.workload);
    record.set_workload_hash(task.key.workload_hash);
    record.set_shape_erased_hash(task.key.shape_erased_hash);
    record.set_workload_name(task.key.workload_name);
    Database* const database = server_.log().database();
    MutexLock lock(database->mutex());
    const auto signer = EnsureSigner(database, {"0123456789abcdef", "ann@host"});
    const auto added = InsertForeign(database, record, *signer, 1);
    ASSERT_TRUE(added.ok()) << added.status();
    EXPECT_TRUE(*added);
  }
  std::vector<std::string> Traces(const std::string& job) {
    std::vector<std::string> traces;
    for (const auto& [trial, trace] : server_.TracesOf(job)) traces.push_back(trace);
    return traces;
  }

  FakeServer server_;
  int records_ = 0;
};

TEST_F(ListedJobTest, MeasuresWhatIsListedAndEnds) {
  FakeWorker worker(&server_, "w");
  // The last has the steps of the first, whatever sketch it names.
  const std::string job = server_.Submit(
      Listed({TraceOf(2), TraceOf(4), TraceOf(8), "v1\nsketch other a=1\nsplit(t0.a0, [2])\n"}));
  EXPECT_EQ(server_.Progress(job).trials_planned(), 3);
  EXPECT_EQ(worker.Work(), 3);
  const v1::JobProgress progress = server_.Progress(job);
  EXPECT_EQ(progress.state(), v1::JOB_STATE_DONE) << progress.message();
  EXPECT_EQ(progress.trials(), 3);
  EXPECT_THAT(Traces(job), UnorderedElementsAre(TraceOf(2), TraceOf(4), TraceOf(8)));
  EXPECT_EQ(server_.RecordsOf(job)[0].record.provenance().strategy(), "listed/history");
}

TEST_F(ListedJobTest, TheSameAgainMeasuresAgain) {
  FakeWorker worker(&server_, "w");
  server_.Submit(Listed({TraceOf(2), TraceOf(4)}));
  EXPECT_EQ(worker.Work(), 2);
  const std::string again = server_.Submit(Listed({TraceOf(2), TraceOf(4)}));
  EXPECT_EQ(worker.Work(), 2) << "results that the log holds are no reason not to measure";
  EXPECT_EQ(server_.Progress(again).state(), v1::JOB_STATE_DONE);
}

// A schedule's time of a final round, that is measured again alone: with the same code it keeps its rank, and
// with other code the time of now counts.
TEST_F(ListedJobTest, AFinalistKeepsItsRankUnlessItsCodeChanged) {
  FakeWorker worker(&server_, "w");
  const PlannedTask task = PlanJob(MakeSpec({kTestWorkload}, 1))->tasks[0];
  const auto measure = [&](const std::string& digest, double seconds) {
    server_.Submit(Listed({TraceOf(2)}));
    const std::vector<v1::Assignment> leased = worker.Lease(1);
    ASSERT_EQ(leased.size(), 1u);
    v1::MeasureResult result = FakeResult(leased[0]);
    result.set_code_digest(digest);
    result.mutable_timing()->set_seconds(seconds);
    result.mutable_timing()->clear_samples_seconds();
    result.mutable_timing()->set_ci_low_seconds(seconds);
    result.mutable_timing()->set_ci_high_seconds(seconds);
    ASSERT_TRUE(worker.Report(leased[0], result).ok()) << ::testing::PrintToString(worker.ignored);
  };
  const auto best = [&] {
    return server_.log()
        .Best({task.key.workload_hash, task.key.target}, v1::TIMING_PROTOCOL_WARM)
        .value()
        .record;
  };
  measure("old", 1e-3);
  v1::Record finalist = best();
  finalist.set_trial(RemeasuredTrialName(finalist.trial(), 5));
  finalist.set_recorded_unix_micros(0);
  finalist.mutable_result()->mutable_timing()->set_final_round("round");
  finalist.mutable_result()->mutable_timing()->set_rank_seconds(0.9e-3);
  ASSERT_TRUE(server_.log().Append({finalist}).ok());
  measure("old", 2e-3);
  EXPECT_EQ(best().result().timing().seconds(), 2e-3);
  EXPECT_EQ(best().result().timing().rank_seconds(), 0.9e-3);
  measure("new", 3e-3);
  EXPECT_EQ(best().result().code_digest(), "new");
  EXPECT_EQ(best().result().timing().rank_seconds(), 3e-3);
}

TEST_F(ListedJobTest, GoesOnAfterARestart) {
  std::vector<std::string> candidates;
  for (int n = 2; n < 42; ++n) candidates.push_back(TraceOf(n));
  const std::string job = server_.Submit(Listed(candidates));
  {
    FakeWorker worker(&server_, "w");
    for (int batch = 0; batch < 3; ++batch) {
      for (const v1::Assignment& assignment : worker.Lease(3)) ASSERT_TRUE(worker.Report(assignment).ok());
    }
  }
  server_.Restart();
  FakeWorker worker(&server_, "w");
  EXPECT_EQ(worker.Work(), 31);
  EXPECT_EQ(server_.Progress(job).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(Traces(job).size(), 40u) << "each once";
}

TEST_F(ListedJobTest, RefusalsNameTheCandidate) {
  EXPECT_THAT(Refusal(Listed({})), HasSubstr("workload 1 lists no candidate; expected at least one trace"));
  EXPECT_THAT(Refusal(Listed({TraceOf(2), "v1\nsplot(i)\n"})),
              HasSubstr("candidate 2 of workload 1: 2:6: unknown primitive splot"));
  EXPECT_THAT(Refusal(Listed({std::string(70000, 'x')})),
              HasSubstr("candidate 1 of workload 1 has 70000 bytes; expected at most 65536"));
  EXPECT_THAT(Refusal(Listed(std::vector<std::string>(1001, TraceOf(2)))),
              HasSubstr("workload 1 lists 1001 candidates; expected at most 1000"));
  v1::JobSpec random = Listed({TraceOf(2)});
  random.set_strategy("random");
  random.set_trials(4);
  EXPECT_THAT(Refusal(random), HasSubstr("workload 1 lists candidates, and the strategy is random"));
}

TEST_F(ListedJobTest, ForeignRecordsAreMeasuredTheFastestFirst) {
  AddForeign(kTestWorkload, TraceOf(2), 3e-3);
  AddForeign(kTestWorkload, TraceOf(4), 1e-3);
  AddForeign(kTestWorkload, TraceOf(8), 2e-3);
  AddForeign(kOtherWorkload, TraceOf(16), 2e-3);
  FakeWorker worker(&server_, "w");
  const std::string job = server_.Submit(Foreign(2), "reverify");
  EXPECT_EQ(server_.Progress(job).trials_planned(), 3);
  EXPECT_EQ(worker.Work(), 3);
  EXPECT_THAT(Traces(job), UnorderedElementsAre(TraceOf(4), TraceOf(8), TraceOf(16)));
  // The own results count now: these records wait no longer, and the best is by the time that was measured
  // here.
  const PlannedTask task = PlanJob(MakeSpec({kTestWorkload}, 1))->tasks[0];
  const LogKey key{task.key.workload_hash, task.key.target};
  EXPECT_EQ(*CountWaitingForeign(server_.log(), key), 1);
  const auto best = server_.log().Best(key, v1::TIMING_PROTOCOL_WARM);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->record.provenance().job(), job);

  // The same command takes the next ones, and in the end there are none.
  EXPECT_NE(server_.Submit(Foreign(2), "reverify"), job);
  EXPECT_EQ(worker.Work(), 1);
  EXPECT_THAT(Refusal(Foreign(2)), HasSubstr("no foreign record waits that was timed under warm"));
}

TEST_F(ListedJobTest, ForeignRecordsOfANameAndForADevice) {
  AddForeign(kTestWorkload, TraceOf(2), 3e-3);
  AddForeign(kOtherWorkload, TraceOf(4), 2e-3);
  AddForeign(kOtherWorkload, TraceOf(8), 2e-3, "v1 cpu mcpu=sapphirerapids l1d=48K l2=2M threads=2");
  v1::JobSpec spec = Foreign();
  spec.add_tasks()->set_workload("scale");
  spec.set_target(kTestTarget);
  const auto listed = ListForeign(spec, server_.log());
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->tasks_size(), 1) << "a haswell cannot measure what is for a sapphirerapids";
  EXPECT_THAT(listed->tasks(0).candidates(), ElementsAre(TraceOf(4)));
  EXPECT_EQ(listed->strategy(), "listed");
  spec.clear_target();
  EXPECT_EQ(ListForeign(spec, server_.log())->tasks_size(), 2);
  spec.mutable_tasks(0)->set_workload("conv");
  EXPECT_TRUE(absl::IsNotFound(ListForeign(spec, server_.log()).status()));
  spec.clear_protocol();
  EXPECT_THAT(std::string(ListForeign(spec, server_.log()).status().message()),
              HasSubstr("foreign records, and no protocol; expected warm, cold or model"));
}

// Between the submission and its turn, another job measured them.
TEST_F(ListedJobTest, AJobThatFindsNothingLeftIsDone) {
  AddForeign(kTestWorkload, TraceOf(2), 3e-3);
  FakeServer& server = server_;
  server.HoldWrites(true);
  v1::SubmitJobRequest request;
  *request.mutable_spec() = Foreign();
  std::string job;
  server->Submit(request, [&job](const absl::StatusOr<v1::JobProgress>& progress) {
    ASSERT_TRUE(progress.ok()) << progress.status();
    job = progress->job();
  });
  server.Commit();
  const PlannedTask task = PlanJob(MakeSpec({kTestWorkload}, 1))->tasks[0];
  v1::Record own = MakeRecord({.index = 90, .target = kTestTarget, .trace = TraceOf(2)});
  own.set_workload(task.key.workload);
  own.set_workload_hash(task.key.workload_hash);
  own.set_shape_erased_hash(task.key.shape_erased_hash);
  ASSERT_TRUE(server.log().Append({own}).ok());
  server.HoldWrites(false);
  server.Commit();
  const v1::JobProgress progress = server.Progress(job);
  EXPECT_EQ(progress.state(), v1::JOB_STATE_DONE) << progress.message();
}

}  // namespace
}  // namespace mycc
