// The words for statuses and the names of trials, parsed and printed.
#include "proto/names.h"

#include <gtest/gtest.h>

#include <set>

namespace mycc {
namespace {

TEST(NamesTest, EveryStatusHasItsOwnWordAndPinnedNumber) {
  std::set<std::string> words;
  for (int number = v1::MEASURE_STATUS_OK; number <= v1::MEASURE_STATUS_WORKER_UNFIT; ++number) {
    const auto status = static_cast<v1::MeasureStatus>(number);
    const std::string word = StatusName(status);
    EXPECT_TRUE(words.insert(word).second) << word;
    ASSERT_TRUE(ParseStatusName(word).ok()) << word;
    EXPECT_EQ(*ParseStatusName(word), status);
  }
  // Numbers stand in logs: these never change.
  EXPECT_EQ(v1::MEASURE_STATUS_OK, 1);
  EXPECT_EQ(v1::MEASURE_STATUS_BUILD_ERROR, 2);
  EXPECT_EQ(v1::MEASURE_STATUS_BUILD_TIMEOUT, 3);
  EXPECT_EQ(v1::MEASURE_STATUS_RUN_ERROR, 4);
  EXPECT_EQ(v1::MEASURE_STATUS_RUN_TIMEOUT, 5);
  EXPECT_EQ(v1::MEASURE_STATUS_WRONG_RESULT, 6);
  EXPECT_EQ(v1::MEASURE_STATUS_OUT_OF_MEMORY, 7);
  EXPECT_EQ(v1::MEASURE_STATUS_DEVICE_LOST, 8);
  EXPECT_EQ(v1::MEASURE_STATUS_WORKER_LOST, 9);
  EXPECT_EQ(v1::MEASURE_STATUS_WORKER_UNFIT, 10);
  EXPECT_EQ(v1::TIMING_PROTOCOL_WARM, 1);
  EXPECT_EQ(v1::TIMING_PROTOCOL_COLD, 2);
  EXPECT_EQ(v1::TIMING_PROTOCOL_MODEL, 3);
}

TEST(NamesTest, AStatusOfANewerVersionIsPrintedByItsNumber) {
  EXPECT_EQ(StatusName(static_cast<v1::MeasureStatus>(42)), "status_42");
}

TEST(NamesTest, UnknownWordsAreRefusedWithTheKnownOnes) {
  const absl::Status status = ParseStatusName("fine").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("\"fine\"; expected one of ok, build_error"),
            std::string::npos);
  EXPECT_FALSE(ParseStatusName("").ok());
  EXPECT_FALSE(ParseProtocolName("hot").ok());
  for (const auto protocol : {v1::TIMING_PROTOCOL_WARM, v1::TIMING_PROTOCOL_COLD, v1::TIMING_PROTOCOL_MODEL})
    EXPECT_EQ(*ParseProtocolName(ProtocolName(protocol)), protocol);
}

TEST(NamesTest, OnlyLostDevicesAndWorkersAreInfrastructure) {
  EXPECT_TRUE(IsInfrastructureFailure(v1::MEASURE_STATUS_DEVICE_LOST));
  EXPECT_TRUE(IsInfrastructureFailure(v1::MEASURE_STATUS_WORKER_LOST));
  EXPECT_TRUE(IsInfrastructureFailure(v1::MEASURE_STATUS_WORKER_UNFIT));
  EXPECT_FALSE(IsInfrastructureFailure(v1::MEASURE_STATUS_RUN_ERROR));
  EXPECT_FALSE(IsInfrastructureFailure(v1::MEASURE_STATUS_OK));
}

TEST(NamesTest, TrialNamesRoundTrip) {
  const TrialId id{JobId(0xfeedfacecafef00d), 3, 17, 4294967295u};
  EXPECT_EQ(TrialName(id), "jfeedfacecafef00d/3/17/4294967295");
  ASSERT_TRUE(ParseTrialName(TrialName(id)).ok());
  EXPECT_EQ(*ParseTrialName(TrialName(id)), id);
  EXPECT_EQ(JobId(7), "j0000000000000007");
  const TrialId newer{JobId(0xfeedfacecafef00d, 7), 0, 1, 2};
  EXPECT_EQ(TrialName(newer), "jfeedfacecafef00d0000000000000007/0/1/2");
  ASSERT_TRUE(ParseTrialName(TrialName(newer)).ok());
  EXPECT_EQ(*ParseTrialName(TrialName(newer)), newer);
}

TEST(NamesTest, RepeatedMeasurementsAndFinalRoundsAreNoTrials) {
  const std::string trial = TrialName({JobId(1), 2, 3, 4});
  EXPECT_EQ(RemeasuredTrialName(trial, 5), trial + "@5");
  EXPECT_EQ(RemeasuredTrialName(RemeasuredTrialName(trial, 5), 6), trial + "@6") << "of the same candidate";
  const std::string round = FinalRoundName(JobId(1), 2, 7);
  EXPECT_EQ(round, "j0000000000000001/2/final@7");
  EXPECT_FALSE(ParseTrialName(round).ok());
  EXPECT_TRUE(IsFinalRoundOf(JobId(1), 2, round));
  EXPECT_FALSE(IsFinalRoundOf(JobId(1), 22, round));
  EXPECT_FALSE(IsFinalRoundOf(JobId(2), 2, round));
  EXPECT_FALSE(IsFinalRoundOf(JobId(1), 2, ""));
}

TEST(NamesTest, MalformedTrialNamesAreRefused) {
  const std::string job = JobId(1);
  for (const std::string& name : {std::string(), job, job + "/1/2", job + "/1/2/3/4", job + "/01/2/3",
                                  job + "/-1/2/3", job + "/1/2/4294967296", job + "/1//3", job + "/ 1/2/3",
                                  std::string("x/1/2/3"), "J" + job.substr(1) + "/1/2/3", job + "0/1/2/3",
                                  JobId(1, 2) + "0/1/2/3", RemeasuredTrialName(job + "/1/2/3", 5)}) {
    EXPECT_FALSE(ParseTrialName(name).ok()) << name;
  }
}

}  // namespace
}  // namespace mycc
