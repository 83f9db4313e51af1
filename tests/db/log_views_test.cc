// Pages of a log for people: what they hold, and that they walk no table of records.
#include "db/log_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "db/job_store.h"
#include "proto/names.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LogViewsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto log = TuningLog::Open(directory_ / "tuning.db", OpenMode::kCreate);
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
    std::vector<v1::Record> records;
    for (int i = 0; i < 6; ++i) {
      records.push_back(MakeRecord({.index = i,
                                    .trace = absl::StrCat("v1\nsketch tile a=1\nsplit(x, [4])\n# ", i),
                                    .job = static_cast<uint64_t>(i % 2)}));
    }
    even_ = records[0].provenance().job();
    odd_ = records[1].provenance().job();
    ASSERT_TRUE(log_->Append(records).ok());
  }
  std::vector<int64_t> IdsOf(const CandidatePage& page) {
    const auto rows = ReadCandidates(*log_, page);
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::vector<int64_t> ids;
    for (const CandidateRow& row : *rows) ids.push_back(row.id);
    return ids;
  }

  const TempDir directory_;
  std::unique_ptr<TuningLog> log_;
  std::string even_, odd_;  // jobs
};

TEST_F(LogViewsTest, CandidatesAreAJobsOwn) {
  EXPECT_THAT(IdsOf({.job = even_}), ElementsAre(1, 3, 5));
  EXPECT_THAT(IdsOf({.job = even_, .after = 1, .limit = 1}), ElementsAre(3));
  EXPECT_THAT(IdsOf({.job = odd_, .limit = 2, .newest = true}), ElementsAre(4, 6));
  EXPECT_THAT(IdsOf({.job = odd_, .before = 6, .limit = 2, .newest = true}), ElementsAre(2, 4));
  EXPECT_THAT(IdsOf({.job = odd_, .key = 99}), IsEmpty());
  EXPECT_THAT(IdsOf({.job = "none"}), IsEmpty());
}

TEST_F(LogViewsTest, ARowHasTheHeadOfItsTrace) {
  const auto rows = ReadCandidates(*log_, {.job = even_, .limit = 1});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ((*rows)[0].head, "v1\nsketch tile a=1\n");
  EXPECT_EQ((*rows)[0].status, v1::MEASURE_STATUS_OK);
  EXPECT_GT((*rows)[0].seconds, 0);
  EXPECT_FALSE((*rows)[0].is_final);
}

TEST_F(LogViewsTest, JobsWithRecordsAreListedTheNewestFirst) {
  EXPECT_THAT(*ReadMeasuredJobs(*log_, 10), IsEmpty()) << "the log has records of jobs that it does not know";
  int64_t now = 1000;
  auto log = TuningLog::Open(directory_ / "jobs.db", OpenMode::kServe, [&now] { return now += 1000; });
  ASSERT_TRUE(log.ok()) << log.status();
  JobStore store(log->get());
  for (const uint64_t job : {1, 2, 3}) ASSERT_TRUE(store.CreateJob({.id = JobId(job)}, {}).ok());
  ASSERT_TRUE((*log)
                  ->Append({MakeRecord({.index = 0, .job = 3}), MakeRecord({.index = 1, .job = 3}),
                            MakeRecord({.index = 2, .job = 1})})
                  .ok());
  const auto jobs = ReadMeasuredJobs(**log, 10);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ((*jobs)[0].id, JobId(3));
  EXPECT_EQ((*jobs)[0].records, 2);
  EXPECT_GT((*jobs)[0].created_unix_micros, (*jobs)[1].created_unix_micros);
  EXPECT_EQ((*jobs)[1].id, JobId(1));
  EXPECT_EQ(ReadMeasuredJobs(**log, 1)->size(), 1u);
}

TEST_F(LogViewsTest, KeysAreFoundByTheirWords) {
  const auto keys = ReadKeys(*log_, 0, "", 10);
  ASSERT_TRUE(keys.ok()) << keys.status();
  ASSERT_EQ(keys->size(), 1u);
  EXPECT_EQ(ReadKeys(*log_, 0, (*keys)[0].workload_name, 10)->size(), 1u);
  EXPECT_EQ(ReadKeys(*log_, 0, (*keys)[0].key.workload_hash.substr(0, 6), 10)->size(), 1u);
  EXPECT_THAT(*ReadKeys(*log_, 0, "no such words", 10), IsEmpty());
  EXPECT_THAT(*ReadKeys(*log_, (*keys)[0].id, "", 10), IsEmpty());
}

TEST_F(LogViewsTest, FactsCountTheRecords) {
  const auto facts = ReadLogFacts(*log_);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->newest_record, 6);
  EXPECT_GT(facts->file_bytes, 0);
  EXPECT_THAT(facts->jobs, IsEmpty());
}

TEST_F(LogViewsTest, NoTableOfRecordsIsWalked) {
  ASSERT_TRUE(ReadCandidates(*log_, {.job = even_, .key = 1, .after = 2}).ok());
  ASSERT_TRUE(ReadCandidates(*log_, {.job = even_, .newest = true}).ok());
  ASSERT_TRUE(ReadTaskKeys(*log_, even_).ok());
  ASSERT_TRUE(ReadKeys(*log_, 0, "x", 10).ok());
  ASSERT_TRUE(ReadLogFacts(*log_).ok());
  ASSERT_TRUE(ReadMeasuredJobs(*log_, 10).ok());
  const auto plans = log_->database()->QueryPlans();
  ASSERT_TRUE(plans.ok()) << plans.status();
  int pages = 0;
  for (const std::string& plan : *plans) {
    EXPECT_FALSE(absl::StrContains(plan, "SCAN records")) << plan;
    if (!absl::StrContains(plan, "WHERE job = ?1 AND id > ?2")) continue;
    ++pages;
    EXPECT_TRUE(absl::StrContains(plan, "USING INDEX records_by_job (job=? AND rowid")) << plan;
    EXPECT_FALSE(absl::StrContains(plan, "TEMP B-TREE")) << plan;
  }
  EXPECT_EQ(pages, 2);
}

}  // namespace
}  // namespace mycc
