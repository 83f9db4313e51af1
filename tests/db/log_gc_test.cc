// The records that `log gc` removes, and those that it must keep.
#include "db/log_gc.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "db/job_store.h"
#include "db/model_store.h"
#include "proto/names.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

constexpr int64_t kNow = 1800000000000000;  // long after MakeRecord's times
constexpr int64_t kDay = 86400;

class LogGcTest : public testing::Test {
 protected:
  void SetUp() override {
    log_ = *TuningLog::Open(directory_ / "tuning.db", OpenMode::kCreate, [this] { return now_; });
  }
  void Add(const RecordSpec& spec) { ASSERT_TRUE(log_->Append({MakeRecord(spec)}).ok()); }
  GcCounts Collect(const GcPolicy& policy) {
    auto counts = CollectGarbage(log_.get(), policy);
    EXPECT_TRUE(counts.ok()) << counts.status();
    return *counts;
  }
  std::vector<int64_t> Ids() {
    const auto records = log_->List({});
    std::vector<int64_t> ids;
    for (const StoredRecord& record : *records) ids.push_back(record.id);
    return ids;
  }
  using Is = std::vector<int64_t>;

  TempDir directory_;
  int64_t now_ = kNow;
  std::unique_ptr<TuningLog> log_;
};

TEST_F(LogGcTest, ByDefaultNoRecordIsForgotten) {
  Add({.index = 1});
  Add({.index = 2, .status = v1::MEASURE_STATUS_BUILD_ERROR});
  EXPECT_EQ(Collect({}).records, 0);
  EXPECT_EQ(Ids(), (Is{1, 2}));
}

TEST_F(LogGcTest, OldFailuresAndSupersededResultsAreForgottenWhenAsked) {
  Add({.index = 1, .trace = "v1 a"});
  Add({.index = 2, .status = v1::MEASURE_STATUS_BUILD_ERROR});
  Add({.index = 3, .recorded = kNow, .trace = "v1 a"});  // supersedes 1
  Add({.index = 4, .verified = false});
  EXPECT_EQ(Collect({.failures_after_seconds = 100000 * kDay}).records, 0);
  EXPECT_EQ(Collect({.failures_after_seconds = kDay, .dry_run = true}).records, 3);
  EXPECT_EQ(Ids().size(), 4u);
  EXPECT_EQ(Collect({.failures_after_seconds = kDay}).records, 3);
  EXPECT_EQ(Ids(), (Is{3}));
}

TEST_F(LogGcTest, AWrongResultStaysWhileItSpeaksAgainstATime) {
  Add({.index = 1, .recorded = 1, .trace = "v1 a"});
  Add({.index = 2, .status = v1::MEASURE_STATUS_WRONG_RESULT, .recorded = 2, .trace = "v1 a"});
  for (const char* time : {"first", "second"}) {
    Collect({.failures_after_seconds = kDay, .keep_best = 1});
    EXPECT_EQ(Ids(), (Is{1, 2})) << time;
  }
  Add({.index = 3, .recorded = 1, .trace = "v1 a"});  // merged from elsewhere
  EXPECT_FALSE(log_->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM).ok());
}

TEST_F(LogGcTest, TheBestOfEachKeyStayAndSoDoPinsAndBans) {
  for (int i = 1; i <= 6; ++i) Add({.index = i, .seconds = 1e-3 * i});
  Add({.index = 7, .shape = 65, .seconds = 1});
  ASSERT_TRUE(log_->SetOverride(5, OverrideKind::kPin, "").ok());
  ASSERT_TRUE(log_->SetOverride(6, OverrideKind::kBan, "").ok());
  EXPECT_EQ(Collect({.keep_best = 2}).records, 2);
  EXPECT_EQ(Ids(), (Is{1, 2, 5, 6, 7}));
}

TEST_F(LogGcTest, WhatIsServedStaysBeforeWhatIsNotProven) {
  for (int i = 1; i <= 3; ++i) Add({.index = i, .seconds = 1e-3 * i, .launches = 4});
  Add({.index = 4, .seconds = 4e-3, .launches = 40, .strained_launches = 20});
  EXPECT_EQ(Collect({.keep_best = 2}).records, 2);
  EXPECT_EQ(Ids(), (Is{1, 4}));
}

// Records 1 and 2 were timed in one round, 3 and 4 in another; 5 in none.
TEST_F(LogGcTest, SupersededTimesGoUnlessTheirTraceIsAmongTheBest) {
  Add({.index = 1, .seconds = 1e-3, .trace = "v1 a"});
  Add({.index = 2, .seconds = 2e-3, .trace = "v1 b"});
  Add({.index = 3, .seconds = 1.1e-3, .trace = "v1 a"});
  Add({.index = 4, .seconds = 2.1e-3, .trace = "v1 b"});
  Add({.index = 5, .seconds = 3e-3, .trace = "v1 c"});
  ASSERT_TRUE(log_->Get(1)->superseded && log_->Get(2)->superseded);
  EXPECT_EQ(Collect({.keep_best = 1}).records, 3);
  EXPECT_EQ(Ids(), (Is{1, 3}));
}

TEST_F(LogGcTest, EndedJobsLoseTheirTrialsAndTheirRecordsStay) {
  JobStore jobs(log_.get());
  const v1::Record sample = MakeRecord({.shape = 99});
  Task task;
  task.key = {sample.workload(), sample.workload_hash(), sample.shape_erased_hash(), "w", kTarget};
  for (uint64_t job : {1, 2}) {
    ASSERT_TRUE(jobs.CreateJob({.id = JobId(job)}, {task}).ok());
    ASSERT_TRUE(jobs.AddGeneration({.job = JobId(job), .trials = {{"v1 a", {}}, {"v1 b", {}}}}).ok());
    const std::string name = TrialName({JobId(job), 0, 0, 0});
    ASSERT_TRUE(jobs.LeaseTrials({name}, "w").ok());
    ASSERT_TRUE(
        (*jobs.FinishTrials({{name, 1, MakeResult({.status = v1::MEASURE_STATUS_BUILD_ERROR})}}))[0].ok());
  }
  ASSERT_TRUE(jobs.SetJobState(JobId(1), JobState::kDone, "").ok());
  EXPECT_EQ(Collect({}).jobs, 0);  // it ended just now
  now_ += 31 * kDay * 1000000;
  // The running job's failure is part of its search and stays; the ended one's does not.
  const GcCounts counts = Collect({.failures_after_seconds = kDay});
  EXPECT_EQ(counts.jobs, 1);
  EXPECT_EQ(counts.records, 1);
  EXPECT_EQ(Ids(), (Is{2}));
  EXPECT_FALSE(jobs.GetJob(JobId(1)).ok());
  EXPECT_EQ(jobs.LoadTrials(JobId(2), 0)->size(), 2u);
}

TEST_F(LogGcTest, JobsThatAreShownByTheirSummaryLetGoOfTheirRecords) {
  JobStore jobs(log_.get());
  const v1::Record sample = MakeRecord({});
  Task task;
  task.key = {sample.workload(), sample.workload_hash(), sample.shape_erased_hash(), "w", kTarget};
  constexpr JobState kStates[] = {JobState::kDone, JobState::kDone, JobState::kCancelled, JobState::kRunning};
  for (uint64_t job = 0; job < std::size(kStates); ++job) {
    const std::string id = JobId(job);
    ASSERT_TRUE(jobs.CreateJob({.id = id}, {task}).ok());
    const std::string a = absl::StrCat("v1 a", job), b = absl::StrCat("v1 b", job);
    ASSERT_TRUE(jobs.AddGeneration({.job = id, .trials = {{a, {}}, {b, {}}}}).ok());
    for (uint32_t i = 0; i < 2; ++i) {
      const std::string name = TrialName({id, 0, 0, i});
      ASSERT_TRUE(jobs.LeaseTrials({name}, "w").ok());
      ASSERT_TRUE(
          (*jobs.FinishTrials({{name, 1, MakeResult({.seconds = 1e-3 * (1 + 2 * job + i)})}}))[0].ok());
    }
    if (kStates[job] != JobState::kRunning) {
      ASSERT_TRUE(jobs.SetJobState(id, kStates[job], "").ok());
    }
    if (job != 1) {
      ASSERT_TRUE(jobs.SetSummary(id, "how it went").ok());
    }
  }
  GcCounts counts = Collect({.keep_best = 1, .dry_run = true});
  EXPECT_EQ(counts.records, 1);
  EXPECT_EQ(Ids().size(), 8u);
  counts = Collect({.keep_best = 1});
  EXPECT_EQ(counts.records, 1) << "the second one of the job that is done";
  EXPECT_EQ(counts.records_in_use, 6) << "of one that has no summary, a cancelled and a running one";
  EXPECT_EQ(Ids(), (Is{1, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(jobs.LoadTrials(JobId(0), 0)->size(), 2u);
}

TEST_F(LogGcTest, OldModelsAndUnusedKeysGo) {
  ModelStore models(log_.get());
  for (const char* bytes : {"one", "two", "three"}) {
    ++now_;
    ASSERT_TRUE(models.Save("score", "", bytes).ok());
  }
  Add({.index = 1, .shape = 200, .status = v1::MEASURE_STATUS_OUT_OF_MEMORY});
  JobStore jobs(log_.get());
  ASSERT_TRUE(jobs.CreateJob({.id = JobId(1)}, {}).ok());
  EXPECT_EQ(Collect({}).models, 0);  // the job may use them
  ASSERT_TRUE(jobs.SetJobState(JobId(1), JobState::kCancelled, "").ok());
  EXPECT_EQ(Collect({}).models, 0);  // and may go on
  ASSERT_TRUE(jobs.ReopenJob(JobId(1)).ok());
  ASSERT_TRUE(jobs.SetJobState(JobId(1), JobState::kDone, "").ok());
  const GcCounts counts = Collect({.failures_after_seconds = kDay});
  EXPECT_EQ(counts.models, 2);
  EXPECT_EQ(counts.keys, 1);
  EXPECT_EQ(models.Load(*models.NewestId("score"))->bytes, "three");
  EXPECT_EQ(*log_->database()->ReadInt("SELECT count(*) FROM workloads"), 0);
}

}  // namespace
}  // namespace mycc
