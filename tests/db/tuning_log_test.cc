// The tuning log: appending, stamps, finding, visiting, backups.
#include "db/tuning_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>

#include "db/namesake.h"
#include "proto/names.h"
#include "tests/db/tuning_log_fixture.h"

namespace mycc {
namespace {

using testing::HasSubstr;

TEST_F(TuningLogTest, KeepsEveryFieldOfARecord) {
  for (int status = v1::MEASURE_STATUS_OK; status <= v1::MEASURE_STATUS_WORKER_UNFIT; ++status) {
    v1::Record record = MakeRecord({.index = status, .status = static_cast<v1::MeasureStatus>(status)});
    record.mutable_result()->mutable_verification()->set_max_abs_error(
        std::numeric_limits<double>::quiet_NaN());
    auto appended = log_->Append({record});
    ASSERT_TRUE(appended.ok()) << appended.status();
    auto stored = log_->Get((*appended)[0].id);
    ASSERT_TRUE(stored.ok()) << stored.status();
    EXPECT_TRUE(SameMessage(stored->record, record)) << stored->record.DebugString();
    EXPECT_EQ(log_->Find(record.trial())->id, stored->id);
  }
}

TEST_F(TuningLogTest, AResultGivenTwiceIsOneRecord) {
  const v1::Record record = MakeRecord({.index = 1, .seconds = 2e-3});
  v1::Record unstamped = record;
  unstamped.set_recorded_unix_micros(0);
  auto appended = log_->Append({record, record});
  ASSERT_TRUE(appended.ok()) << appended.status();
  EXPECT_TRUE((*appended)[0].is_new);
  EXPECT_FALSE((*appended)[1].is_new);
  EXPECT_EQ((*appended)[0].id, (*appended)[1].id);
  EXPECT_FALSE((*log_->Append({unstamped}))[0].is_new) << "when a log took it in is not what it says";
  EXPECT_EQ(log_->List({})->size(), 1u);
}

TEST_F(TuningLogTest, AnotherResultUnderATrialsNameIsKeptBesideIt) {
  const v1::Record record = MakeRecord({.index = 1, .seconds = 2e-3});
  const v1::Record other = MakeRecord({.index = 1, .seconds = 1e-3});
  auto appended = log_->Append({record, other, record, other});
  ASSERT_TRUE(appended.ok()) << appended.status();
  EXPECT_FALSE((*appended)[0].has_namesakes);
  EXPECT_TRUE((*appended)[1].is_new && (*appended)[1].has_namesakes);
  EXPECT_FALSE((*appended)[2].is_new || (*appended)[3].is_new);
  EXPECT_EQ(log_->List({})->size(), 2u);
  EXPECT_EQ(log_->Find(record.trial())->id +
                log_->Find(NamesakeName(record.trial(),
                                        ContentDigest(log_->Find(record.trial())->id == 1 ? other : record)))
                    ->id,
            3);
}

TEST_F(TuningLogTest, ABatchIsKeptWholeOrNotAtAll) {
  v1::Record bad = MakeRecord({.index = 2});
  bad.mutable_result()->mutable_timing()->set_seconds(-1);
  const absl::Status status = log_->Append({MakeRecord({.index = 1}), bad}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("result.timing.seconds is -1; expected a positive number"));
  EXPECT_TRUE(log_->List({})->empty());
}

class StampTest : public TuningLogTest {
 protected:
  void SetUp() override {
    log_ = *TuningLog::Open(directory_ / "clocked.db", OpenMode::kCreate, [this] { return now_; });
  }
  // The log's stamps, in the order of the records.
  std::vector<int64_t> StampsOf(std::vector<v1::Record> records) {
    std::vector<int64_t> stamps;
    auto appended = log_->Append(records);
    EXPECT_TRUE(appended.ok()) << appended.status();
    for (const AppendedRecord& one : *appended)
      stamps.push_back(log_->Get(one.id)->record.recorded_unix_micros());
    return stamps;
  }
  static v1::Record Unstamped(const RecordSpec& spec) {
    v1::Record record = MakeRecord(spec);
    record.set_recorded_unix_micros(0);
    return record;
  }

  int64_t now_ = 1000;
};

TEST_F(StampTest, IsTheTimeOfDayAndAlwaysGrows) {
  using Stamps = std::vector<int64_t>;
  EXPECT_EQ(StampsOf({Unstamped({.index = 1}), Unstamped({.index = 2})}), (Stamps{1000, 1001}));
  now_ = 500;  // the host's clock was set back
  EXPECT_EQ(StampsOf({Unstamped({.index = 3})}), (Stamps{1002}));
  now_ = 2000;
  EXPECT_EQ(StampsOf({Unstamped({.index = 4})}), (Stamps{2000}));
  EXPECT_EQ(StampsOf({MakeRecord({.index = 5, .recorded = 9000})}), (Stamps{9000})) << "of another log";
  EXPECT_EQ(StampsOf({MakeRecord({.index = 6, .recorded = 8000})}), (Stamps{8000})) << "stamps travel";
  EXPECT_EQ(StampsOf({Unstamped({.index = 7})}), (Stamps{9001})) << "later than what the log has seen";
  ASSERT_TRUE(log_->database()->Run("DELETE FROM records").ok());
  EXPECT_EQ(StampsOf({Unstamped({.index = 8})}), (Stamps{9002})) << "also than what it has forgotten";
}

TEST_F(StampTest, AStampThatNoClockCouldFollowIsRefused) {
  for (const int64_t stamp : {int64_t{-1}, INT64_MAX, int64_t{7258118400000000}}) {
    const absl::Status status = log_->Append({MakeRecord({.recorded = stamp})}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("before the year 2200"));
  }
}

// Every pair of clocks: the later word is the one that was committed later.
TEST_F(StampTest, NoWorkersClockDecides) {
  constexpr int64_t kDays400 = int64_t{400} * 86400 * 1000000;
  int index = 0;
  for (const int64_t first : {-kDays400, int64_t{0}, kDays400}) {
    for (const int64_t second : {-kDays400, int64_t{0}, kDays400}) {
      const std::string trace = "v1 of clocks " + std::to_string(index);
      const int64_t noon = 2 * kDays400;
      const auto add = [&](v1::MeasureStatus status, double seconds, int64_t clock) {
        const v1::Record record = Unstamped({.index = ++index,
                                             .status = status,
                                             .seconds = seconds,
                                             .finished = noon + clock,
                                             .trace = trace});
        return log_->Append({record}).value()[0].id;
      };
      const int64_t lucky = add(v1::MEASURE_STATUS_OK, 1e-6, first);
      EXPECT_EQ(BestId(), lucky);
      const int64_t again = add(v1::MEASURE_STATUS_OK, 2e-6, second);
      EXPECT_EQ(BestId(), again);
      EXPECT_TRUE(log_->Get(lucky)->superseded);
      add(v1::MEASURE_STATUS_WRONG_RESULT, 0, second);
      EXPECT_EQ(BestId(), 0) << "clocks off by " << first << " and " << second;
      add(v1::MEASURE_STATUS_OK, 3e-6, first);
      add(v1::MEASURE_STATUS_RUN_ERROR, 0, second);
      EXPECT_EQ(BestId(), 0) << "a crash speaks as well";
    }
  }
}

TEST_F(TuningLogTest, AHashStandsForOneWorkload) {
  Add({.index = 1});
  v1::Record other = MakeRecord({.index = 2});
  other.set_workload(other.workload() + " ");
  const absl::Status status = log_->Append({other}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("already stands for another workload"));
}

TEST_F(TuningLogTest, FindsTheSameWorkloadOnOtherTargetsAndTheSameComputationAtOtherShapes) {
  Add({.index = 1, .seconds = 2e-3});
  const int64_t here = Add({.index = 2, .seconds = 1e-3});
  const int64_t there = Add({.index = 3, .target = kOtherTarget});
  const int64_t larger = Add({.index = 4, .shape = 128});
  Add({.index = 5, .shape = 256, .status = v1::MEASURE_STATUS_OUT_OF_MEMORY});
  auto targets = log_->BestOfTargets(WorkloadHashOf(64), kWarm);
  ASSERT_TRUE(targets.ok()) << targets.status();
  ASSERT_EQ(targets->size(), 2u);
  EXPECT_EQ((*targets)[0].id, here);
  EXPECT_EQ((*targets)[1].id, there);
  auto shapes = log_->BestOfShapes(MakeRecord({}).shape_erased_hash(), kWarm);
  ASSERT_EQ(shapes->size(), 3u);
  EXPECT_EQ((*shapes)[2].id, larger);
  EXPECT_TRUE(log_->BestOfTargets("no such hash", kWarm)->empty());
}

TEST_F(TuningLogTest, FiltersAreAllApplied) {
  for (int i = 0; i < 10; ++i) {
    Add({.index = i,
         .shape = i < 5 ? 64 : 65,
         .target = i % 2 ? kTarget : kOtherTarget,
         .status = i == 9 ? v1::MEASURE_STATUS_RUN_ERROR : v1::MEASURE_STATUS_OK,
         .job = i < 3 ? 1u : 2u});
  }
  const auto count = [&](const RecordFilter& filter) { return log_->List(filter)->size(); };
  EXPECT_EQ(count({}), 10u);
  EXPECT_EQ(count({.workload_hash = WorkloadHashOf(64)}), 5u);
  EXPECT_EQ(count({.workload_hash = WorkloadHashOf(64).substr(0, 10)}), 5u);
  EXPECT_EQ(count({.workload_hash = WorkloadHashOf(64), .target = kTarget}), 2u);
  EXPECT_EQ(count({.shape_erased_hash = MakeRecord({}).shape_erased_hash()}), 10u);
  EXPECT_EQ(count({.workload_name = "add_one"}), 10u);
  EXPECT_EQ(count({.workload_name = "add_two"}), 0u);
  EXPECT_EQ(count({.job = JobId(1)}), 3u);
  EXPECT_EQ(count({.worker = "worker-a"}), 10u);
  EXPECT_EQ(count({.worker = "' OR 1=1 --"}), 0u);
  EXPECT_EQ(count({.statuses = {v1::MEASURE_STATUS_RUN_ERROR, v1::MEASURE_STATUS_WRONG_RESULT}}), 1u);
  EXPECT_EQ(count({.protocol = kCold}), 0u);
  EXPECT_EQ(count({.since_unix_micros = 1700000002000000 + 7}), 3u);
  EXPECT_EQ(count({.min_id = 3, .max_id = 5}), 3u);
  EXPECT_EQ(count({.limit = 4}), 4u);
  EXPECT_EQ((*log_->List({.newest_first = true, .limit = 1}))[0].id, 10);
}

TEST_F(TuningLogTest, VisitsEveryRecordOnceInEitherDirection) {
  std::vector<v1::Record> records;
  for (int i = 0; i < 700; ++i) records.push_back(MakeRecord({.index = i}));
  ASSERT_TRUE(log_->Append(records).ok());
  for (bool newest_first : {false, true}) {
    for (int64_t limit : {0, 1, 256, 512, 699, 1000}) {
      std::vector<int64_t> ids;
      ASSERT_TRUE(log_->ForEach({.newest_first = newest_first, .limit = limit},
                                [&](const StoredRecord& record) {
                                  ids.push_back(record.id);
                                  return absl::OkStatus();
                                })
                      .ok());
      EXPECT_EQ(ids.size(), limit == 0 ? 700u : std::min<size_t>(limit, 700));
      EXPECT_TRUE(
          std::ranges::is_sorted(ids, [&](int64_t a, int64_t b) { return newest_first ? a > b : a < b; }));
    }
  }
  int visited = 0;
  const absl::Status stopped = log_->ForEach({}, [&](const StoredRecord&) {
    return ++visited == 300 ? absl::CancelledError("enough") : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsCancelled(stopped));
  EXPECT_EQ(visited, 300);
}

TEST_F(TuningLogTest, AReaderCannotWrite) {
  Add({});
  auto reader = TuningLog::Open(directory_ / "tuning.db", OpenMode::kRead);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->Append({MakeRecord({.index = 1})}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE((*reader)->SetOverride(1, OverrideKind::kBan, "").ok());
  EXPECT_FALSE((*reader)->ClearOverride(1, OverrideKind::kPin).ok());
}

TEST_F(TuningLogTest, ABackupIsACompleteLogOfItsOwn) {
  for (int i = 0; i < 5; ++i) Add({.index = i});
  ASSERT_TRUE(log_->SetOverride(3, OverrideKind::kPin, "why").ok());
  const std::string path = directory_ / "backup.db";
  ASSERT_TRUE(log_->Backup(path).ok());
  EXPECT_EQ(log_->Backup(path).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(log_->Backup(directory_ / "no/folder").ok(), false);
  Add({.index = 6});
  auto backup = TuningLog::Open(path, OpenMode::kWrite);
  ASSERT_TRUE(backup.ok()) << backup.status();
  EXPECT_EQ((*backup)->List({})->size(), 5u);
  EXPECT_EQ((*backup)->Best(KeyOf({}), kWarm)->id, 3);
}

}  // namespace
}  // namespace mycc
