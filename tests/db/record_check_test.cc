// Which records may be stored, rank, and be served.
#include "db/record_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "proto/proof.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

void ExpectRefused(const v1::Record& record, const std::string& words) {
  const absl::Status status = CheckRecord(record);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(words));
}

TEST(RecordCheckTest, AcceptsResultsAndFailures) {
  EXPECT_TRUE(CheckRecord(MakeRecord({})).ok());
  EXPECT_TRUE(CheckRecord(MakeRecord({.status = v1::MEASURE_STATUS_BUILD_TIMEOUT})).ok());
  v1::Record bare = MakeRecord({.status = v1::MEASURE_STATUS_WORKER_LOST});
  bare.clear_result();
  bare.mutable_result()->set_status(v1::MEASURE_STATUS_WORKER_LOST);
  bare.clear_trace();  // the naive schedule has no steps
  EXPECT_TRUE(CheckRecord(bare).ok());
}

TEST(RecordCheckTest, AFinalRoundsResultSaysWhatItRanksBy) {
  v1::Record record = MakeRecord({.rank_seconds = 2e-3});
  EXPECT_TRUE(CheckRecord(record).ok());
  EXPECT_EQ(RankSeconds(record.result().timing()), 2e-3);
  EXPECT_EQ(RankSeconds(MakeRecord({.seconds = 3e-3}).result().timing()), 3e-3);
  for (double seconds : {-1e-9, std::nan(""), static_cast<double>(INFINITY)}) {
    record.mutable_result()->mutable_timing()->set_rank_seconds(seconds);
    ExpectRefused(record, "result.timing.rank_seconds is");
  }
  record.mutable_result()->mutable_timing()->clear_rank_seconds();
  ExpectRefused(record, "result.timing.rank_seconds is 0; expected what the final round");
}

TEST(RecordCheckTest, TheKeyMustBeThere) {
  v1::Record record = MakeRecord({});
  record.clear_trial();
  ExpectRefused(record, "record field trial is empty");
  record = MakeRecord({});
  record.clear_workload();
  ExpectRefused(record, "workload is empty");
  record = MakeRecord({});
  record.clear_workload_hash();
  ExpectRefused(record, "workload_hash is empty");
  record = MakeRecord({});
  record.clear_shape_erased_hash();
  ExpectRefused(record, "shape_erased_hash is empty");
  record = MakeRecord({});
  record.clear_target();
  ExpectRefused(record, "target is empty");
}

TEST(RecordCheckTest, AnOkResultHasPositiveTimes) {
  for (double seconds : {0.0, -1e-9, std::nan(""), static_cast<double>(INFINITY)}) {
    v1::Record record = MakeRecord({});
    record.mutable_result()->mutable_timing()->set_seconds(seconds);
    ExpectRefused(record, "result.timing.seconds is");
    record = MakeRecord({});
    record.mutable_result()->mutable_timing()->add_samples_seconds(seconds);
    ExpectRefused(record, "result.timing.samples_seconds holds");
  }
  v1::Record record = MakeRecord({});
  record.mutable_result()->mutable_timing()->clear_protocol();
  ExpectRefused(record, "result.timing.protocol is not set");
}

TEST(RecordCheckTest, TextsAreUtf8) {
  v1::Record record = MakeRecord({});
  record.set_trace("v1 \xff");
  ExpectRefused(record, "record field trace is not UTF-8");
  record = MakeRecord({});
  record.mutable_result()->mutable_device()->set_model("caf\xe9");
  ExpectRefused(record, "record field result.device.model is not UTF-8");
}

TEST(RecordCheckTest, OnlyAVerifiedOkResultCanBeBest) {
  EXPECT_TRUE(IsVerifiedOk(MakeRecord({})));
  EXPECT_FALSE(IsVerifiedOk(MakeRecord({.verified = false})));
  v1::Record wrong = MakeRecord({.status = v1::MEASURE_STATUS_WRONG_RESULT});
  wrong.mutable_result()->mutable_verification()->set_passed(true);
  EXPECT_FALSE(IsVerifiedOk(wrong));
}

TEST(RecordCheckTest, OnlyWhatIsProvenIsServed) {
  EXPECT_TRUE(IsServable(MakeRecord({}))) << "launches were not counted yet";
  EXPECT_FALSE(IsServable(MakeRecord({.launches = 1})));
  EXPECT_FALSE(IsServable(MakeRecord({.launches = 1000, .strained_launches = kProvenLaunches - 1})));
  EXPECT_TRUE(
      IsServable(MakeRecord({.launches = kProvenLaunches + 1, .strained_launches = kProvenLaunches})));
  EXPECT_FALSE(
      IsServable(MakeRecord({.verified = false, .launches = 1000, .strained_launches = kProvenLaunches})));
}

}  // namespace
}  // namespace mycc
