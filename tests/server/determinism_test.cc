// The candidates of a job are a function of its spec and its results. The test varies the measuring workers,
// times, orders of arrival, and restarts of the server.
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "db/job_store.h"
#include "db/model_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordinator.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DeterminismTest : public ::testing::TestWithParam<const char*> {
 protected:
  v1::JobSpec Spec() const {
    v1::JobSpec spec = MakeSpec({kTestWorkload, kOtherWorkload}, 24, 7);
    spec.set_strategy(GetParam());
    return spec;
  }
  std::map<std::string, std::string> Undisturbed() const {
    FakeServer server;
    FakeWorker worker(&server, "w");
    const std::string job = server.Submit(Spec(), "same");
    worker.Work();
    return server.TracesOf(job);
  }
};

TEST_P(DeterminismTest, OneWorkerOrManyInAnyOrder) {
  const auto expected = Undisturbed();
  EXPECT_GE(expected.size(), 24u);
  for (uint32_t seed = 0; seed < 3; ++seed) {
    std::mt19937 random(seed);
    FakeServer server;
    FakeWorker workers[] = {{&server, "a"}, {&server, "b"}, {&server, "c"}};
    const std::string job = server.Submit(Spec(), "same");
    std::vector<std::pair<int, v1::Assignment>> held;
    while (server.Progress(job).state() == v1::JOB_STATE_RUNNING) {
      const int who = static_cast<int>(random() % 3);
      for (const v1::Assignment& assignment : workers[who].Lease(1 + random() % 4))
        held.emplace_back(who, assignment);
      if (held.empty()) continue;
      const size_t which = random() % held.size();
      EXPECT_TRUE(workers[held[which].first].Report(held[which].second).ok());
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    }
    EXPECT_EQ(server.TracesOf(job), expected) << "seed " << seed;
  }
}

TEST_P(DeterminismTest, ServerRestartResumesTheSameSearch) {
  const auto expected = Undisturbed();
  for (uint32_t seed = 0; seed < 4; ++seed) {
    std::mt19937 random(seed);
    FakeServer server;
    const std::string job = server.Submit(Spec(), "same");
    FakeWorker worker(&server, "w");
    std::vector<v1::Assignment> held;
    int restarts = 0;
    for (int step = 0; step < 1000 && server.Progress(job).state() == v1::JOB_STATE_RUNNING; ++step) {
      if (random() % 6 == 0) {
        server.Restart();
        ++restarts;
        // The worker keeps what it holds, and says so when it is asked to register again.
        const v1::RegisterResponse registered = worker.RegisterAgain();
        for (const v1::LeaseId& lost : registered.lost()) {
          EXPECT_THAT(lost.trial(), HasSubstr("/final@")) << "a final round is begun anew";
          std::erase_if(held, [&lost](const auto& one) { return one.lease().trial() == lost.trial(); });
        }
      }
      for (const v1::Assignment& assignment : worker.Lease(2)) held.push_back(assignment);
      if (held.empty()) continue;
      EXPECT_TRUE(worker.Report(held.back()).ok());
      held.pop_back();
    }
    EXPECT_GT(restarts, 2);
    EXPECT_THAT(worker.ignored, IsEmpty());
    EXPECT_EQ(server.TracesOf(job), expected) << "seed " << seed;
    for (const StoredRecord& record : server.RecordsOf(job))
      EXPECT_EQ(record.record.attempt(), 1u) << "measured once";
  }
}

// The windows of a wide farm are in the log: so a restart, after which workers come back one by one, does not
// change the search.
TEST_P(DeterminismTest, AWideFarmResumesTheSameSearch) {
  v1::JobSpec spec = Spec();
  spec.set_trials(72);
  const auto run = [&spec](uint32_t seed, int restarts) {
    std::mt19937 random(seed);
    FakeServer server;
    std::vector<std::unique_ptr<FakeWorker>> workers;
    for (int i = 0; i < 40; ++i) workers.push_back(std::make_unique<FakeWorker>(&server, absl::StrCat(i)));
    const std::string job = server.Submit(spec, "same");
    server.Wait(0);
    std::vector<std::pair<FakeWorker*, v1::Assignment>> held;
    for (int step = 0; server.Progress(job).state() == v1::JOB_STATE_RUNNING; ++step) {
      if (restarts > 0 && step == 60 * restarts) {
        --restarts;
        server.Restart();
        held.clear();
        for (const auto& worker : workers) worker->held.clear(), worker->Register();
        server.Wait(0);
      }
      FakeWorker* const worker = workers[random() % workers.size()].get();
      for (const v1::Assignment& assignment : worker->Lease(2)) held.emplace_back(worker, assignment);
      if (held.size() < 30 && random() % 8 != 0) continue;
      if (held.empty()) continue;
      const auto which = held.begin() + static_cast<std::ptrdiff_t>(random() % held.size());
      EXPECT_TRUE(which->first->Report(which->second).ok());
      held.erase(which);
    }
    uint32_t widest = 0;
    const std::vector<Generation> generations = JobStore(&server.log()).LoadGenerations(job).value();
    for (const Generation& generation : generations) {
      v1::SearchState::Generation state;
      EXPECT_TRUE(state.ParseFromString(generation.state));
      widest = std::max(widest, state.window());
    }
    EXPECT_EQ(widest, 256u);
    return server.TracesOf(job);
  };
  const auto expected = run(1, 0);
  EXPECT_GT(expected.size(), 72u);
  EXPECT_EQ(run(2, 0), expected);
  EXPECT_EQ(run(3, 1), expected);
}

TEST_P(DeterminismTest, WorkersMayDieToo) {
  const auto expected = Undisturbed();
  std::mt19937 random(5);
  FakeServer server;
  const std::string job = server.Submit(Spec(), "same");
  for (int life = 0; life < 200 && server.Progress(job).state() == v1::JOB_STATE_RUNNING; ++life) {
    FakeWorker worker(&server, "w");
    if (random() % 4 == 0) server.Restart(), worker.Register();
    for (int i = 0; i < 8; ++i) {
      const std::vector<v1::Assignment> held = worker.Lease(2);
      for (const v1::Assignment& assignment : held) {
        if (random() % 30 == 0) break;  // what is left dies with it, to be given out again
        EXPECT_TRUE(worker.Report(assignment).ok());
      }
    }
  }
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(server.TracesOf(job), expected);
}

// Moves what the log says of a job's generations to where builds before version 6 of the log kept it.
void WriteAsOlderBuild(TuningLog* log, const std::string& job) {
  const auto generations = JobStore(log).LoadGenerations(job);
  ASSERT_TRUE(generations.ok()) << generations.status();
  std::map<int64_t, v1::SearchState> states;
  v1::SchedulerState scheduler;
  for (const Generation& generation : *generations) {
    ASSERT_TRUE(states[generation.task].add_generations()->ParseFromString(generation.state));
    scheduler.add_proposal_tasks(generation.task);
    scheduler.set_elapsed_seconds(generation.elapsed_seconds);
  }
  Database* database = log->database();
  for (const auto& [task, state] : states) {
    ASSERT_TRUE(database
                    ->Run("UPDATE tasks SET search_state = ?3 WHERE job = ?1 AND task = ?2",
                          {job, task, Blob{state.SerializeAsString()}})
                    .ok());
  }
  ASSERT_TRUE(database
                  ->Run("UPDATE jobs SET scheduler_state = ?2 WHERE id = ?1",
                        {job, Blob{scheduler.SerializeAsString()}})
                  .ok());
  ASSERT_TRUE(database->Run("DELETE FROM generations").ok());
}

TEST_P(DeterminismTest, AJobOfAnOlderBuildContinuesTheSameSearch) {
  FakeServer server;
  const std::string job = server.Submit(Spec(), "same");
  for (int life = 0; life < 2; ++life) {
    FakeWorker worker(&server, "w");
    for (const v1::Assignment& assignment : worker.Lease(7)) EXPECT_TRUE(worker.Report(assignment).ok());
    server.Wait(1);
    if (life == 0) WriteAsOlderBuild(&server.log(), job);
    server.Restart();
  }
  FakeWorker worker(&server, "w");
  worker.Work();
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
  EXPECT_EQ(server.TracesOf(job), Undisturbed());
}

// However many jobs have learned more meanwhile.
TEST(CancelledJobTest, KeepsTheModelsThatItGoesOnWith) {
  FakeServer server;
  FakeWorker worker(&server, "w");
  server.Submit(MakeSpec({kTestWorkload}, 8), "first");
  worker.Work();
  const v1::JobSpec spec = MakeSpec({kOtherWorkload}, 8);
  const std::string job = server.Submit(spec, "mine");
  v1::StoredJob stored;
  ASSERT_TRUE(stored.ParseFromString(JobStore(&server.log()).GetJob(job)->spec));
  ASSERT_EQ(stored.models_size(), 1);
  ASSERT_TRUE(server.Cancel(job).ok());
  for (uint64_t seed = 2; seed < 6; ++seed) {
    v1::JobSpec next = MakeSpec({kTestWorkload}, 8, seed);
    next.set_fresh(true);
    server.Submit(next, absl::StrCat("next ", seed));
    worker.Work();
  }
  EXPECT_EQ(*server.log().database()->ReadInt("SELECT count(*) FROM models"), 4) << "and the three newest";
  EXPECT_TRUE(ModelStore(&server.log()).Load(stored.models(0)).ok());
  EXPECT_EQ(server.Submit(spec, "mine"), job);
  worker.Work();
  EXPECT_EQ(server.Progress(job).state(), v1::JOB_STATE_DONE);
}

TEST(NewJobTest, NamesTheModelOfTheNearestClass) {
  FakeServer server;
  ModelStore models(&server.log());
  const auto model_of_new_job = [&](uint64_t seed) {
    const std::string job = server.Submit(MakeSpec({kTestWorkload}, 8, seed), absl::StrCat("job ", seed));
    v1::StoredJob stored;
    EXPECT_TRUE(stored.ParseFromString(JobStore(&server.log()).GetJob(job)->spec));
    return stored.models_size() == 1 ? stored.models(0) : absl::StrCat(stored.models_size(), " models");
  };
  ASSERT_TRUE(models.Save("cost-sm_90a", "", "a GPU's").ok());
  EXPECT_EQ(model_of_new_job(1), "0 models");
  const std::string far = models.Save("cost-amx", "", "far").value();
  EXPECT_EQ(model_of_new_job(2), far);
  const std::string near = models.Save("cost-avx512", "", "near").value();
  EXPECT_EQ(model_of_new_job(3), near);
  const std::string own = models.Save("cost-avx2", "", "own").value();
  EXPECT_EQ(model_of_new_job(4), own);
}

INSTANTIATE_TEST_SUITE_P(Strategies, DeterminismTest, ::testing::Values("random", "evolutionary"));

}  // namespace
}  // namespace mycc
