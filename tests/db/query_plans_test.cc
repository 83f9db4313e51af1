// SQLite finds the rows that it is asked for by the indexes made for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "db/foreign_table.h"
#include "db/tuning_log.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

using testing::HasSubstr;

constexpr auto kProtocol = v1::TIMING_PROTOCOL_WARM;

// Look-ups must cost the same in a log of a million records: no statement of theirs walks a table.
TEST(QueryPlansTest, LookUpsScanNothing) {
  TempDir directory;
  auto reader = TuningLog::Open(MakeLog(directory, "tuning.db", 50), OpenMode::kRead);
  ASSERT_TRUE((*reader)->Best(KeyOf({}), kProtocol).ok());
  ASSERT_TRUE((*reader)->TopK(KeyOf({}), kProtocol, 5).ok());
  ASSERT_TRUE((*reader)->BestOfTargets(WorkloadHashOf(64), kProtocol).ok());
  ASSERT_TRUE((*reader)->BestOfShapes(MakeRecord({}).shape_erased_hash(), kProtocol).ok());
  ASSERT_TRUE((*reader)->Get(1).ok());
  ASSERT_TRUE((*reader)->Find(MakeRecord({}).trial()).ok());
  RecordFilter finals;
  finals.workload_hash = WorkloadHashOf(64);
  finals.target = kTarget;
  finals.only_final = true;
  ASSERT_TRUE((*reader)->List(finals).ok());
  ASSERT_TRUE((*reader)->ValidRecordOf(MakeRecord({})).ok());
  ASSERT_TRUE(WaitingForeign(**reader, KeyOf({}), kProtocol, 4).ok());
  ASSERT_TRUE(CountWaitingForeign(**reader, KeyOf({})).ok());
  auto plans = (*reader)->database()->QueryPlans();
  ASSERT_TRUE(plans.ok()) << plans.status();
  int ranked = 0;
  for (const std::string& plan : *plans) {
    if (absl::StrContains(plan, "PRAGMA") || absl::StrContains(plan, "max(id)")) continue;
    EXPECT_FALSE(absl::StrContains(plan, ": SCAN") || absl::StrContains(plan, "; SCAN")) << plan;
    if (absl::StrContains(plan, "kind = 1")) {
      EXPECT_THAT(plan, HasSubstr("USING INDEX records_by_trace (key=? AND trace_hash=?)"));
    }
    if (absl::StrContains(plan, "rank_seconds IS NOT NULL")) {
      EXPECT_THAT(plan, HasSubstr("USING INDEX records_of_final_rounds (key=?)"));
    }
    if (!absl::StrContains(plan, "timer_version DESC, coalesce(r.rank_seconds, r.seconds)")) continue;
    ++ranked;
    EXPECT_THAT(plan, HasSubstr("USING INDEX records_by_rank (key=? AND protocol=?)"));
    EXPECT_FALSE(absl::StrContains(plan, "TEMP B-TREE")) << plan;
  }
  EXPECT_EQ(ranked, 1);
}

TEST(QueryPlansTest, AppendingScansNothing) {
  TempDir directory;
  auto log = TuningLog::Open(directory / "tuning.db", OpenMode::kCreate);
  int index = 0;
  for (v1::MeasureStatus status :
       {v1::MEASURE_STATUS_OK, v1::MEASURE_STATUS_OK, v1::MEASURE_STATUS_WRONG_RESULT}) {
    ASSERT_TRUE((*log)->Append({MakeRecord({.index = index++, .status = status, .trace = "v1 a"})}).ok());
  }
  auto plans = (*log)->database()->QueryPlans();
  int by_trace = 0;
  for (const std::string& plan : *plans) {
    if (absl::StrContains(plan, "PRAGMA") || absl::StrContains(plan, "max(id)")) continue;
    EXPECT_FALSE(absl::StrContains(plan, ": SCAN r") || absl::StrContains(plan, "; SCAN r")) << plan;
    if (!absl::StrContains(plan, "UPDATE records AS old")) continue;
    ++by_trace;
    EXPECT_THAT(plan, HasSubstr("SEARCH old USING INDEX records_by_trace (key=? AND trace_hash=?)"));
    EXPECT_THAT(plan, HasSubstr("SEARCH new USING INDEX records_by_trace (key=? AND trace_hash=?)"));
  }
  EXPECT_EQ(by_trace, 1);
}

}  // namespace
}  // namespace mycc
