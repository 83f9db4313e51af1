// The tuning log: appending, ranking, pins and bans, stamps.
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
#include "tests/db/test_log.h"

namespace mycc {
namespace {

using testing::HasSubstr;

constexpr auto kWarm = v1::TIMING_PROTOCOL_WARM;
constexpr auto kCold = v1::TIMING_PROTOCOL_COLD;

class TuningLogTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = TuningLog::Open(directory_ / "tuning.db", OpenMode::kCreate);
    ASSERT_TRUE(opened.ok()) << opened.status();
    log_ = *std::move(opened);
  }

  int64_t Add(const RecordSpec& spec) {
    auto appended = log_->Append({MakeRecord(spec)});
    EXPECT_TRUE(appended.ok()) << appended.status();
    return appended.ok() ? (*appended)[0].id : 0;
  }
  // The best record's id, or 0.
  int64_t BestId(v1::TimingProtocol protocol = kWarm, const RecordSpec& of = {}) {
    auto best = log_->Best(KeyOf(of), protocol);
    EXPECT_TRUE(best.ok() || absl::IsNotFound(best.status())) << best.status();
    return best.ok() ? best->id : 0;
  }
  std::vector<int64_t> TopIds(int k) {
    std::vector<int64_t> ids;
    auto top = log_->TopK(KeyOf({}), kWarm, k);
    EXPECT_TRUE(top.ok()) << top.status();
    for (const StoredRecord& record : *top) ids.push_back(record.id);
    return ids;
  }

  TempDir directory_;
  std::unique_ptr<TuningLog> log_;
};

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
  EXPECT_EQ(*log_->LastRecordId(), 0);
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

TEST_F(TuningLogTest, TheBestIsTheFastestVerifiedOfTheKeyAndProtocol) {
  EXPECT_EQ(BestId(), 0);
  Add({.index = 1, .seconds = 3e-3});
  const int64_t best = Add({.index = 2, .seconds = 2e-3});
  Add({.index = 3, .seconds = 1e-3, .verified = false});
  Add({.index = 4, .status = v1::MEASURE_STATUS_WRONG_RESULT, .seconds = 1e-4});
  const int64_t cold = Add({.index = 5, .seconds = 1e-3, .protocol = kCold});
  Add({.index = 6, .shape = 65, .seconds = 1e-4});
  Add({.index = 7, .target = kOtherTarget, .seconds = 1e-4});
  EXPECT_EQ(BestId(), best);
  EXPECT_EQ(BestId(kCold), cold);
  EXPECT_EQ(BestId(kWarm, {.shape = 66}), 0);
  EXPECT_EQ(log_->Best({"no such hash", kTarget}, kWarm).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TuningLogTest, WhatIsNotProvenRanksAndIsNotServed) {
  const int64_t unproven = Add({.index = 1, .seconds = 1e-3, .launches = 4});
  EXPECT_EQ(BestId(), 0);
  const int64_t old = Add({.index = 2, .seconds = 3e-3});
  const int64_t proven = Add({.index = 3, .seconds = 2e-3, .launches = 40, .strained_launches = 20});
  EXPECT_EQ(BestId(), proven);
  EXPECT_EQ(TopIds(5), (std::vector<int64_t>{proven, old}));
  std::vector<int64_t> leaders;
  const auto ranked = log_->Leaders(KeyOf({}), kWarm, 5);
  for (const StoredRecord& record : *ranked) leaders.push_back(record.id);
  EXPECT_EQ(leaders, (std::vector<int64_t>{unproven, proven, old}));
  const absl::Status pinned = log_->SetOverride(unproven, OverrideKind::kPin, "fast");
  EXPECT_THAT(std::string(pinned.message()), HasSubstr("is not a verified and proven ok result"));
}

TEST_F(TuningLogTest, EqualTimesRankByAge) {
  const int64_t first = Add({.index = 1});
  Add({.index = 2});
  EXPECT_EQ(BestId(), first);
}

TEST_F(TuningLogTest, TimesOfDifferentTimersDoNotCompare) {
  Add({.index = 1, .seconds = 1e-3, .timer_version = 1});
  const int64_t newer = Add({.index = 2, .seconds = 2e-3, .timer_version = 2});
  EXPECT_EQ(BestId(), newer);
  EXPECT_EQ(TopIds(5), (std::vector<int64_t>{newer}));
}

TEST_F(TuningLogTest, TopKIsInOrderAndNoLongerThanAsked) {
  const int64_t third = Add({.index = 1, .seconds = 3e-3});
  const int64_t first = Add({.index = 2, .seconds = 1e-3});
  const int64_t second = Add({.index = 3, .seconds = 2e-3});
  EXPECT_EQ(TopIds(2), (std::vector<int64_t>{first, second}));
  EXPECT_EQ(TopIds(9), (std::vector<int64_t>{first, second, third}));
  EXPECT_TRUE(TopIds(0).empty());
  EXPECT_TRUE(TopIds(-1).empty());
}

TEST_F(TuningLogTest, TheNewestResultSpeaksForItsTrace) {
  const int64_t lucky = Add({.index = 1, .seconds = 1e-3, .recorded = 100, .trace = "v1 a"});
  const int64_t other = Add({.index = 2, .seconds = 2e-3, .recorded = 110, .trace = "v1 b"});
  EXPECT_EQ(BestId(), lucky);
  const int64_t repeated = Add({.index = 3, .seconds = 3e-3, .recorded = 120, .trace = "v1 a"});
  EXPECT_EQ(BestId(), other);
  EXPECT_EQ(TopIds(9), (std::vector<int64_t>{other, repeated}));
  EXPECT_TRUE(log_->Get(lucky)->superseded);
  // An older measurement that comes in late changes nothing.
  const int64_t late = Add({.index = 4, .seconds = 1e-4, .recorded = 90, .trace = "v1 a"});
  EXPECT_EQ(BestId(), other);
  EXPECT_TRUE(log_->Get(late)->superseded);
  // Under another protocol the trace speaks for itself.
  const int64_t cold =
      Add({.index = 5, .seconds = 5e-3, .protocol = kCold, .recorded = 130, .trace = "v1 b"});
  EXPECT_EQ(BestId(kCold), cold);
  EXPECT_EQ(BestId(), other);
}

TEST_F(TuningLogTest, AFinalRoundDecidesBesideSingleTimings) {
  const int64_t lucky = Add({.index = 1, .seconds = 1.00e-3, .recorded = 100, .trace = "v1 lucky"});
  Add({.index = 2, .seconds = 1.02e-3, .recorded = 101, .trace = "v1 steady"});
  const int64_t third = Add({.index = 3, .seconds = 1.03e-3, .recorded = 102, .trace = "v1 third"});
  // The device was slower then, and the order is another one.
  const int64_t loser =
      Add({.index = 4, .seconds = 1.22e-3, .recorded = 110, .trace = "v1 lucky", .rank_seconds = 1.017e-3});
  const int64_t winner =
      Add({.index = 5, .seconds = 1.20e-3, .recorded = 110, .trace = "v1 steady", .rank_seconds = 1.000e-3});
  EXPECT_EQ(TopIds(9), (std::vector<int64_t>{winner, loser, third}));
  EXPECT_EQ(log_->Get(winner)->record.result().timing().seconds(), 1.20e-3) << "what was measured is kept";
  EXPECT_TRUE(log_->Get(lucky)->superseded);
  EXPECT_EQ(log_->Get(lucky)->record.result().timing().seconds(), 1.00e-3) << "and so is the first time";

  // A time of another moment, taken alone, does not move it, whatever it says; a later round does, and so
  // does what speaks against it.
  Add({.index = 6, .seconds = 2.00e-3, .recorded = 120, .trace = "v1 steady"});
  Add({.index = 7, .seconds = 0.50e-3, .recorded = 121, .trace = "v1 lucky"});
  EXPECT_EQ(TopIds(9), (std::vector<int64_t>{winner, loser, third}));
  const int64_t later =
      Add({.index = 8, .seconds = 0.90e-3, .recorded = 130, .trace = "v1 steady", .rank_seconds = 1.020e-3});
  EXPECT_EQ(TopIds(9), (std::vector<int64_t>{loser, later, third}));
  Add({.index = 9, .status = v1::MEASURE_STATUS_WRONG_RESULT, .recorded = 140, .trace = "v1 lucky"});
  EXPECT_EQ(TopIds(9), (std::vector<int64_t>{later, third}));
}

TEST_F(TuningLogTest, ATimeThatIsNotProvenDoesNotTakeThePlaceOfOneThatIs) {
  const int64_t proven =
      Add({.index = 1, .recorded = 100, .trace = "v1 a", .launches = 40, .strained_launches = 20});
  Add({.index = 2, .recorded = 110, .trace = "v1 a", .launches = 4});
  EXPECT_EQ(BestId(), proven);
  const int64_t again =
      Add({.index = 3, .recorded = 120, .trace = "v1 a", .launches = 40, .strained_launches = 20});
  EXPECT_EQ(TopIds(5), (std::vector<int64_t>{again}));
}

TEST_F(TuningLogTest, OnlyWhatAFinalRoundRankedIsListed) {
  Add({.index = 1});
  const int64_t ranked = Add({.index = 2, .rank_seconds = 2e-3});
  RecordFilter filter;
  filter.only_final = true;
  const auto records = log_->List(filter);
  ASSERT_EQ(records->size(), 1u);
  EXPECT_EQ((*records)[0].id, ranked);
}

TEST_F(TuningLogTest, ATraceFoundWrongIsNoLongerOffered) {
  Add({.index = 1, .seconds = 1e-3, .recorded = 100, .trace = "v1 a"});
  Add({.index = 2, .seconds = 1e-3, .protocol = kCold, .recorded = 100, .trace = "v1 a"});
  const int64_t other = Add({.index = 3, .seconds = 2e-3, .recorded = 100, .trace = "v1 b"});
  // A timeout says nothing for good.
  Add({.index = 4, .status = v1::MEASURE_STATUS_RUN_TIMEOUT, .recorded = 110, .trace = "v1 b"});
  Add({.index = 5, .status = v1::MEASURE_STATUS_WRONG_RESULT, .recorded = 120, .trace = "v1 a"});
  EXPECT_EQ(BestId(), other);
  EXPECT_EQ(BestId(kCold), 0);
  const int64_t mended = Add({.index = 6, .seconds = 1e-3, .recorded = 130, .trace = "v1 a"});
  EXPECT_EQ(BestId(), mended);
}

TEST_F(TuningLogTest, WhatIsBestDoesNotDependOnTheOrderOfArrival) {
  std::vector<v1::Record> records;
  std::mt19937 random(3);
  for (int i = 0; i < 40; ++i) {
    const v1::MeasureStatus statuses[] = {v1::MEASURE_STATUS_OK, v1::MEASURE_STATUS_OK, v1::MEASURE_STATUS_OK,
                                          v1::MEASURE_STATUS_WRONG_RESULT, v1::MEASURE_STATUS_BUILD_TIMEOUT};
    records.push_back(MakeRecord({.index = i,
                                  .status = statuses[random() % 5],
                                  .seconds = 1e-3 + 1e-5 * i,
                                  .protocol = random() % 2 ? kWarm : kCold,
                                  .recorded = static_cast<int64_t>(1 + random() % 20),
                                  .trace = "v1 " + std::to_string(random() % 8),
                                  .rank_seconds = random() % 4 == 0 ? 1e-3 + 2e-6 * i : 0}));
  }
  std::vector<std::string> expected;
  for (int round = 0; round < 12; ++round) {
    auto log = TuningLog::Open(directory_ / ("order" + std::to_string(round)), OpenMode::kCreate);
    for (const v1::Record& record : records) ASSERT_TRUE((*log)->Append({record}).ok());
    std::vector<std::string> ranked;
    for (auto protocol : {kWarm, kCold}) {
      auto top = (*log)->TopK(KeyOf({}), protocol, 100);
      ASSERT_TRUE(top.ok()) << top.status();
      for (const StoredRecord& record : *top) ranked.push_back(record.record.trial());
      EXPECT_FALSE(top->empty());
    }
    if (round == 0) expected = ranked;
    EXPECT_EQ(ranked, expected) << "round " << round;
    std::shuffle(records.begin(), records.end(), random);
  }
}

TEST_F(TuningLogTest, APinStandsBeforeTheBestAndABanBehindAll) {
  const int64_t first = Add({.index = 1, .seconds = 1e-3});
  const int64_t second = Add({.index = 2, .seconds = 2e-3});
  const int64_t third = Add({.index = 3, .seconds = 3e-3});
  ASSERT_TRUE(log_->SetOverride(third, OverrideKind::kPin, "steady under load").ok());
  EXPECT_EQ(BestId(), third);
  EXPECT_EQ(log_->Best(KeyOf({}), kWarm)->override_by->reason, "steady under load");
  EXPECT_EQ(TopIds(9), (std::vector<int64_t>{third, first, second}));
  EXPECT_EQ(TopIds(2), (std::vector<int64_t>{third, first}));
  EXPECT_EQ(BestId(kCold), third);  // a pin is a person's word: it holds for every protocol

  ASSERT_TRUE(log_->SetOverride(second, OverrideKind::kPin, "another").ok());  // one pin for each key
  EXPECT_EQ(TopIds(9), (std::vector<int64_t>{second, first, third}));
  ASSERT_TRUE(log_->SetOverride(second, OverrideKind::kBan, "hangs with 3 threads").ok());
  EXPECT_EQ(TopIds(9), (std::vector<int64_t>{first, third}));
  ASSERT_TRUE(log_->SetOverride(first, OverrideKind::kBan, "").ok());
  EXPECT_EQ(BestId(), third);
  const absl::Status other_kind = log_->ClearOverride(second, OverrideKind::kPin);
  EXPECT_EQ(other_kind.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(other_kind.message()),
      HasSubstr("is not pinned; it is banned, which `log ban --clear` takes back: hangs with 3 threads"));
  ASSERT_TRUE(log_->ClearOverride(first, OverrideKind::kBan).ok());
  EXPECT_EQ(BestId(), first);
  EXPECT_EQ(log_->ClearOverride(first, OverrideKind::kBan).code(), absl::StatusCode::kNotFound);
}

TEST_F(TuningLogTest, ABanHoldsForEveryMeasurementOfTheTrace) {
  const int64_t banned = Add({.index = 1, .seconds = 1e-3, .trace = "v1 a"});
  ASSERT_TRUE(log_->SetOverride(banned, OverrideKind::kBan, "wrong for denormals").ok());
  Add({.index = 2, .seconds = 1e-4, .trace = "v1 a"});
  EXPECT_EQ(BestId(), 0);
  const int64_t elsewhere = Add({.index = 3, .target = kOtherTarget, .trace = "v1 a"});
  EXPECT_EQ(BestId(kWarm, {.target = kOtherTarget}), elsewhere);  // it is a ban for its key
}

TEST_F(TuningLogTest, OnlyVerifiedResultsCanBePinned) {
  const int64_t failed = Add({.index = 1, .status = v1::MEASURE_STATUS_BUILD_ERROR});
  const int64_t unverified = Add({.index = 2, .verified = false});
  EXPECT_EQ(log_->SetOverride(failed, OverrideKind::kPin, "").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(log_->SetOverride(unverified, OverrideKind::kPin, "").code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(log_->SetOverride(99, OverrideKind::kPin, "").code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(log_->SetOverride(failed, OverrideKind::kBan, "").ok());
}

TEST_F(TuningLogTest, APinOfATraceFoundWrongIsNotServed) {
  const int64_t pinned = Add({.index = 1, .seconds = 2e-3, .trace = "v1 a"});
  const int64_t other = Add({.index = 2, .seconds = 3e-3, .trace = "v1 b"});
  ASSERT_TRUE(log_->SetOverride(pinned, OverrideKind::kPin, "").ok());
  Add({.index = 3, .status = v1::MEASURE_STATUS_WRONG_RESULT, .trace = "v1 a"});
  EXPECT_EQ(BestId(), other);
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
      EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end(),
                                 [&](int64_t a, int64_t b) { return newest_first ? a > b : a < b; }));
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
