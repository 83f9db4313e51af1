// The order of a log's records: times, the newest results, final rounds, pins and bans.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>

#include "db/namesake.h"
#include "db/tuning_log.h"
#include "proto/names.h"
#include "tests/db/tuning_log_fixture.h"

namespace mycc {
namespace {

using testing::HasSubstr;

using RankingTest = TuningLogTest;

TEST_F(RankingTest, TheBestIsTheFastestVerifiedOfTheKeyAndProtocol) {
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

TEST_F(RankingTest, WhatIsNotProvenRanksAndIsNotServed) {
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

TEST_F(RankingTest, EqualTimesRankByAge) {
  const int64_t first = Add({.index = 1});
  Add({.index = 2});
  EXPECT_EQ(BestId(), first);
}

TEST_F(RankingTest, TimesOfDifferentTimersDoNotCompare) {
  Add({.index = 1, .seconds = 1e-3, .timer_version = 1});
  const int64_t newer = Add({.index = 2, .seconds = 2e-3, .timer_version = 2});
  EXPECT_EQ(BestId(), newer);
  EXPECT_EQ(TopIds(5), (std::vector<int64_t>{newer}));
}

TEST_F(RankingTest, TopKIsInOrderAndNoLongerThanAsked) {
  const int64_t third = Add({.index = 1, .seconds = 3e-3});
  const int64_t first = Add({.index = 2, .seconds = 1e-3});
  const int64_t second = Add({.index = 3, .seconds = 2e-3});
  EXPECT_EQ(TopIds(2), (std::vector<int64_t>{first, second}));
  EXPECT_EQ(TopIds(9), (std::vector<int64_t>{first, second, third}));
  EXPECT_TRUE(TopIds(0).empty());
  EXPECT_TRUE(TopIds(-1).empty());
}

TEST_F(RankingTest, TheNewestResultSpeaksForItsTrace) {
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

TEST_F(RankingTest, AFinalRoundDecidesBesideSingleTimings) {
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

TEST_F(RankingTest, ATimeThatIsNotProvenDoesNotTakeThePlaceOfOneThatIs) {
  const int64_t proven =
      Add({.index = 1, .recorded = 100, .trace = "v1 a", .launches = 40, .strained_launches = 20});
  Add({.index = 2, .recorded = 110, .trace = "v1 a", .launches = 4});
  EXPECT_EQ(BestId(), proven);
  const int64_t again =
      Add({.index = 3, .recorded = 120, .trace = "v1 a", .launches = 40, .strained_launches = 20});
  EXPECT_EQ(TopIds(5), (std::vector<int64_t>{again}));
}

TEST_F(RankingTest, OnlyWhatAFinalRoundRankedIsListed) {
  Add({.index = 1});
  const int64_t ranked = Add({.index = 2, .rank_seconds = 2e-3});
  RecordFilter filter;
  filter.only_final = true;
  const auto records = log_->List(filter);
  ASSERT_EQ(records->size(), 1u);
  EXPECT_EQ((*records)[0].id, ranked);
}

TEST_F(RankingTest, ATraceFoundWrongIsNoLongerOffered) {
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

TEST_F(RankingTest, WhatIsBestDoesNotDependOnTheOrderOfArrival) {
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
    std::ranges::shuffle(records, random);
  }
}

TEST_F(RankingTest, APinStandsBeforeTheBestAndABanBehindAll) {
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

TEST_F(RankingTest, ABanHoldsForEveryMeasurementOfTheTrace) {
  const int64_t banned = Add({.index = 1, .seconds = 1e-3, .trace = "v1 a"});
  ASSERT_TRUE(log_->SetOverride(banned, OverrideKind::kBan, "wrong for denormals").ok());
  Add({.index = 2, .seconds = 1e-4, .trace = "v1 a"});
  EXPECT_EQ(BestId(), 0);
  const int64_t elsewhere = Add({.index = 3, .target = kOtherTarget, .trace = "v1 a"});
  EXPECT_EQ(BestId(kWarm, {.target = kOtherTarget}), elsewhere);  // it is a ban for its key
}

TEST_F(RankingTest, OnlyVerifiedResultsCanBePinned) {
  const int64_t failed = Add({.index = 1, .status = v1::MEASURE_STATUS_BUILD_ERROR});
  const int64_t unverified = Add({.index = 2, .verified = false});
  EXPECT_EQ(log_->SetOverride(failed, OverrideKind::kPin, "").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(log_->SetOverride(unverified, OverrideKind::kPin, "").code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(log_->SetOverride(99, OverrideKind::kPin, "").code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(log_->SetOverride(failed, OverrideKind::kBan, "").ok());
}

TEST_F(RankingTest, APinOfATraceFoundWrongIsNotServed) {
  const int64_t pinned = Add({.index = 1, .seconds = 2e-3, .trace = "v1 a"});
  const int64_t other = Add({.index = 2, .seconds = 3e-3, .trace = "v1 b"});
  ASSERT_TRUE(log_->SetOverride(pinned, OverrideKind::kPin, "").ok());
  Add({.index = 3, .status = v1::MEASURE_STATUS_WRONG_RESULT, .trace = "v1 a"});
  EXPECT_EQ(BestId(), other);
}

}  // namespace
}  // namespace mycc
