// Jobs that are limited as a whole: a model's kernels share the trials, their sum is its latency, and the job
// ends when little more is to be expected.
#include <memory>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job_plan.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr char kDeepModelWorkload[] =
    "workload deep(x: f32[48,512], w: f32[512,64]) -> (y: f32[48,64]) {\n"
    "  y[i,j] = sum[k:512](x[i,k] * w[k,j])\n"
    "}\n";

v1::JobSpec ModelSpec(uint32_t total_trials) {
  v1::JobSpec spec = MakeSpec({kTestWorkload, kOtherWorkload, kDeepModelWorkload}, 0);
  spec.mutable_tasks(0)->set_count(3);
  spec.set_total_trials(total_trials);
  spec.set_is_model(true);
  return spec;
}

TEST(ModelJobTest, KernelsShareTheTrials) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(ModelSpec(30));
  EXPECT_EQ(server.Progress(job).trials_planned(), 30);
  EXPECT_EQ(worker.Work(), 30);
  const v1::JobProgress progress = server.Progress(job);
  EXPECT_EQ(progress.state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(progress.message(), "all trials are measured");
  EXPECT_EQ(progress.trials(), 30);
  for (const v1::TaskProgress& task : progress.tasks()) EXPECT_GT(task.trials(), 0) << task.workload_name();
}

TEST(ModelJobTest, KernelsAreTimedAsInAModel) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  v1::JobSpec spec = ModelSpec(3);
  server.Submit(spec);
  EXPECT_EQ(worker.Lease(1)[0].protocol(), v1::TIMING_PROTOCOL_MODEL);
  spec.set_protocol(v1::TIMING_PROTOCOL_COLD);
  EXPECT_EQ(PlanJob(spec)->tasks[0].protocol, v1::TIMING_PROTOCOL_COLD);
  spec.set_protocol(v1::TIMING_PROTOCOL_MODEL);
  spec.set_target("h100");
  EXPECT_THAT(std::string(PlanJob(spec).status().message()),
              HasSubstr("workload 1 is to be timed as in a model on v1 cuda arch=sm_90a"));
  spec.set_protocol(v1::TIMING_PROTOCOL_UNSPECIFIED);
  EXPECT_EQ(PlanJob(spec)->tasks[0].protocol, v1::TIMING_PROTOCOL_COLD);
}

TEST(ModelJobTest, FewTrialsAreOneForEachKernel) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(ModelSpec(3));
  EXPECT_EQ(worker.Work(), 3);
  const v1::JobProgress progress = server.Progress(job);
  for (const v1::TaskProgress& task : progress.tasks()) {
    EXPECT_EQ(task.trials(), 1);
    EXPECT_EQ(task.best_alone_seconds(), task.first_seconds()) << "the default schedule";
  }
}

TEST(ModelJobTest, LatencyIsKnownOnceEveryKernelHasATime) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(ModelSpec(30));
  while (server.Progress(job).tasks_timed() < 3) {
    EXPECT_EQ(server.Progress(job).latency_seconds(), 0);
    for (const v1::Assignment& assignment : worker.Lease(1)) ASSERT_TRUE(worker.Report(assignment).ok());
  }
  EXPECT_TRUE(server.Progress(job).is_model());
  EXPECT_GT(server.Progress(job).latency_seconds(), 0);
  worker.Work();
  const v1::JobProgress progress = server.Progress(job);
  double best = 0;
  for (const v1::TaskProgress& task : progress.tasks())
    best += static_cast<double>(task.count()) * task.best_seconds();
  EXPECT_DOUBLE_EQ(progress.latency_seconds(), best);
  EXPECT_GE(progress.default_latency_seconds(), progress.latency_seconds());
  server.Restart();
  EXPECT_DOUBLE_EQ(server.Progress(job).latency_seconds(), best) << "of the summary";
  EXPECT_DOUBLE_EQ(server.List()[0].latency_seconds(), best);
  v1::JobSpec no_model = ModelSpec(30);
  no_model.set_is_model(false);
  EXPECT_EQ(server.Progress(server.Submit(no_model)).latency_seconds(), 0);
}

void SetPart(v1::Grouping::Part* part, uint32_t task, int64_t count) {
  part->set_task(task);
  part->set_count(count);
}

// Reports all that is leased; the third kernel takes `share` of its time.
void WorkWithThird(FakeServer* server, FakeWorker* worker, const std::string& job, double share) {
  for (int step = 0; step < 200 && server->Progress(job).state() == v1::JOB_STATE_RUNNING; ++step) {
    for (const v1::Assignment& assignment : worker->Lease(1)) {
      std::vector<v1::MeasureResult> results = FakeResults(assignment);
      const bool is_third = absl::StrContains(assignment.workload(), "512");
      for (v1::MeasureResult& result : results) {
        const double seconds = result.timing().seconds() * (is_third ? share : 1);
        result.mutable_timing()->set_seconds(seconds);
        result.mutable_timing()->set_samples_seconds(0, seconds);
      }
      EXPECT_TRUE(worker->ReportAll(assignment, results).ok());
    }
  }
}

// The third kernel may take the first one's places.
TEST(ModelJobTest, TheFasterGroupingCountsInTheLatency) {
  for (const double share : {1e-2, 1e2}) {
    FakeServer server;
    FakeWorker worker(&server, "w");
    v1::JobSpec spec = ModelSpec(40);
    spec.mutable_tasks(2)->set_is_alternative(true);
    v1::Grouping& grouping = *spec.add_groupings();
    grouping.set_task(0);
    grouping.set_count(3);
    SetPart(grouping.add_parts(), 2, 3);
    const std::string job = server.Submit(spec);
    WorkWithThird(&server, &worker, job, share);
    const v1::JobProgress progress = server.Progress(job);
    EXPECT_EQ(progress.state(), v1::JOB_STATE_DONE);
    EXPECT_EQ(progress.tasks(2).count(), 0);
    EXPECT_GE(progress.tasks(2).trials(), 1);
    EXPECT_GT(progress.tasks(2).first_seconds(), 0) << "the default schedule";
    const double first = progress.tasks(0).best_seconds(), third = progress.tasks(2).best_seconds();
    EXPECT_DOUBLE_EQ(progress.latency_seconds(),
                     3 * (share < 1 ? third : first) + progress.tasks(1).best_seconds());
    server.Restart();
    EXPECT_DOUBLE_EQ(server.Progress(job).latency_seconds(), progress.latency_seconds());
  }
}

// The third kernel may take the places of both others, as those of another layout do.
TEST(ModelJobTest, TheFasterLayoutCountsInTheLatency) {
  for (const double share : {1e-2, 1e2}) {
    FakeServer server;
    FakeWorker worker(&server, "w");
    v1::JobSpec spec = ModelSpec(40);
    spec.mutable_tasks(2)->set_is_alternative(true);
    v1::Grouping& layout = *spec.add_groupings();
    layout.set_task(0);
    layout.set_count(3);
    SetPart(layout.add_more(), 1, 1);
    SetPart(layout.add_parts(), 2, 2);
    const std::string job = server.Submit(spec);
    WorkWithThird(&server, &worker, job, share);
    const v1::JobProgress progress = server.Progress(job);
    const double plain = 3 * progress.tasks(0).best_seconds() + progress.tasks(1).best_seconds();
    const double expected = share < 1 ? 2 * progress.tasks(2).best_seconds() : plain;
    EXPECT_NEAR(progress.latency_seconds(), expected, 1e-12 * plain);
  }
}

TEST(ModelJobTest, AGroupingOfNoTaskIsRefused) {
  v1::JobSpec spec = ModelSpec(30);
  spec.add_groupings()->add_more()->set_task(5);
  EXPECT_THAT(std::string(PlanJob(spec).status().message()),
              HasSubstr("a grouping of workload 6; expected one of"));
  spec.mutable_groupings(0)->clear_more();
  spec.mutable_groupings(0)->set_task(3);
  EXPECT_THAT(std::string(PlanJob(spec).status().message()),
              HasSubstr("a grouping of workload 4; expected one of"));
}

// The third kernel takes a thousandth of the time.
TEST(ModelJobTest, NegligibleKernelsHaveAFirstLookAlone) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  const std::string job = server.Submit(ModelSpec(40));
  int rounds = 0;
  for (int step = 0; step < 200 && server.Progress(job).state() == v1::JOB_STATE_RUNNING; ++step) {
    for (const v1::Assignment& assignment : worker.Lease(1)) {
      std::vector<v1::MeasureResult> results = FakeResults(assignment);
      const bool is_last = absl::StrContains(assignment.workload(), "512");
      rounds += assignment.rivals_size() > 0;
      EXPECT_FALSE(is_last && assignment.rivals_size() > 0) << "a final round";
      for (v1::MeasureResult& result : results) {
        const double seconds = result.timing().seconds() * (is_last ? 1e-3 : 1);
        result.mutable_timing()->set_seconds(seconds);
        result.mutable_timing()->set_samples_seconds(0, seconds);
      }
      EXPECT_TRUE(worker.ReportAll(assignment, results).ok());
    }
  }
  const v1::JobProgress progress = server.Progress(job);
  EXPECT_EQ(progress.state(), v1::JOB_STATE_DONE);
  EXPECT_LE(progress.tasks(2).trials(), 4);
  EXPECT_GT(progress.tasks(0).trials(), 8);
  EXPECT_GT(rounds, 0);
}

TEST(ModelJobTest, TheLogHasDoneItWhereItHoldsAsManyTrialsInAll) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  server.Submit(ModelSpec(30), "first");
  worker.Work();
  const v1::JobProgress again = server.Progress(server.Submit(ModelSpec(24), "second"));
  EXPECT_EQ(again.state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(again.tasks_timed(), 3);
  EXPECT_GT(again.latency_seconds(), 0);
  server.Submit(ModelSpec(31), "third");
  EXPECT_EQ(worker.Work(), 31) << "and begins with what is known";
  v1::JobSpec fresh = ModelSpec(24);
  fresh.set_fresh(true);
  server.Submit(fresh, "fourth");
  EXPECT_EQ(worker.Work(), 24);
  v1::JobSpec other = ModelSpec(24);
  other.add_tasks()->set_workload("workload copy(x: f32[8]) -> (y: f32[8]) {\n  y[i] = x[i]\n}\n");
  server.Submit(other, "fifth");
  EXPECT_EQ(worker.Work(), 24) << "one kernel has no time yet";
}

// Every trial takes three seconds; nothing is faster than the default.
v1::JobProgress Stalled(FakeServer* server, const std::string& job, bool restarts) {
  auto worker = std::make_unique<FakeWorker>(server, "w");
  for (int step = 0; step < 300 && server->Progress(job).state() == v1::JOB_STATE_RUNNING; ++step) {
    if (restarts && step % 10 == 9) {
      server->Restart();
      worker = std::make_unique<FakeWorker>(server, "w");
    }
    for (const v1::Assignment& assignment : worker->Lease(1)) {
      v1::MeasureResult result = FakeResult(assignment);
      result.mutable_timing()->set_seconds(1e-3);
      result.mutable_timing()->set_samples_seconds(0, 1e-3);
      std::vector<v1::MeasureResult> results(1 + assignment.rivals_size(), result);
      EXPECT_TRUE(worker->ReportAll(assignment, results).ok());
    }
    server->Wait(3);
  }
  return server->Progress(job);
}

TEST(ModelJobTest, EndsWhenTheNextMinuteGainsTooLittle) {
  for (const bool restarts : {false, true}) {
    FakeServer server;
    v1::JobSpec spec = ModelSpec(0);
    spec.set_budget_seconds(3600);
    spec.set_min_gain(0.005);
    const std::string job = server.Submit(spec);
    EXPECT_EQ(server.Progress(job).trials_planned(), 0);
    const v1::JobProgress progress = Stalled(&server, job, restarts);
    EXPECT_EQ(progress.state(), v1::JOB_STATE_DONE);
    EXPECT_EQ(progress.message(), "the next minute would gain less than 0.5 %") << "restarts: " << restarts;
    EXPECT_GE(progress.trials(), 20) << "a minute's";
    EXPECT_LT(progress.trials(), 120);
  }
}

TEST(ModelJobTest, EndsWhenAsManyTrialsAgainGainTooLittle) {
  for (const bool restarts : {false, true}) {
    FakeServer server;
    v1::JobSpec spec = ModelSpec(1000);
    spec.set_min_gain(0.005);
    const v1::JobProgress progress = Stalled(&server, server.Submit(spec), restarts);
    EXPECT_EQ(progress.state(), v1::JOB_STATE_DONE);
    EXPECT_EQ(progress.message(), "as many trials again would gain less than 0.5 %")
        << "restarts: " << restarts;
    EXPECT_LT(progress.trials(), 120);
  }
}

TEST(ModelJobTest, SenselessLimitsAreRefused) {
  FakeServer server;
  const auto refusal = [&](double min_gain, uint32_t total_trials) {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = ModelSpec(total_trials);
    request.mutable_spec()->set_min_gain(min_gain);
    return std::string(
        AnswerOf<v1::JobProgress>(&server, [&](const JobReply& reply) { server->Submit(request, reply); })
            .status()
            .message());
  };
  EXPECT_THAT(refusal(1.5, 10), HasSubstr("the least gain is no share; expected 0 to 1"));
  EXPECT_THAT(refusal(-0.5, 10), HasSubstr("the least gain is no share"));
  EXPECT_THAT(refusal(0.5, 0), HasSubstr("neither trials nor a budget"));
}

}  // namespace
}  // namespace mycc
