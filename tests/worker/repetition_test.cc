// Comparing launches bit by bit.
#include "worker/repetition.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/strain.h"

namespace mycc {
namespace {

class RepetitionTest : public ::testing::Test {
 protected:
  const uint8_t* Bytes(const void* data) { return static_cast<const uint8_t*>(data); }

  std::vector<float> floats_ = std::vector<float>(4096, 1.5f);
  std::vector<int8_t> bytes_ = std::vector<int8_t>(7, 3);
  Repetition repetition_{{{MakeBuffer("y", DType::kF32, {64, 64}), Bytes(floats_.data())},
                          {MakeBuffer("z", DType::kI8, {7}), Bytes(bytes_.data())}}};
};

TEST_F(RepetitionTest, CountsLaunchesThatLeaveTheSameBits) {
  EXPECT_EQ(repetition_.launches(), 1u);
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(repetition_.Check().ok());
  EXPECT_EQ(repetition_.launches(), 10u);
}

TEST_F(RepetitionTest, SaysHowManyElementsDifferAndAtWhichLaunch) {
  ASSERT_TRUE(repetition_.Check().ok());
  floats_[812] = floats_[4095] = 1.5000001f;
  floats_[900] = -1.5f;
  const absl::Status status = repetition_.Check();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_EQ(status.message(),
            "launch 3 left other bits than launch 1 in 3 of 4096 elements of output y, the first of them "
            "element 812");
}

TEST_F(RepetitionTest, LooksAtEveryOutputBitByBit) {
  bytes_[6] = 2;
  EXPECT_THAT(std::string(repetition_.Check().message()),
              ::testing::HasSubstr("1 of 7 elements of output z"));
  bytes_[6] = 3;
  floats_[0] = -0.0f;
  EXPECT_FALSE(repetition_.Check().ok());
  floats_[0] = 1.5f;
  EXPECT_TRUE(repetition_.Check().ok());
}

TEST_F(RepetitionTest, LooksWhereLaunchesLeaveTheirOutputsNow) {
  std::vector<float> elsewhere = floats_;
  std::ranges::fill(floats_, 0.0f);
  repetition_.MoveTo({{MakeBuffer("y", DType::kF32, {64, 64}), Bytes(elsewhere.data())},
                      {MakeBuffer("z", DType::kI8, {7}), Bytes(bytes_.data())}});
  EXPECT_TRUE(repetition_.Check().ok());
  elsewhere[17] = 2;
  EXPECT_FALSE(repetition_.Check().ok());
}

TEST(LaunchesWithinTest, IsBoundedOnBothSides) {
  EXPECT_EQ(LaunchesWithin(1e-3, 1e-4, 0, 64), 10);
  EXPECT_EQ(LaunchesWithin(1e-3, 1e-6, 0, 64), 64);
  EXPECT_EQ(LaunchesWithin(1e-3, 1.0, 2, 64), 2);
  EXPECT_EQ(LaunchesWithin(1e-3, 0, 2, 64), 64);
}

TEST(StrainedTeamTest, TakesTeamsOfMoreAndOfFewerThreads) {
  for (const int threads : {1, 2, 3, 64}) {
    int most = 0, fewest = threads;
    for (int i = 0; i < 10; ++i) {
      const int team = StrainedTeam(i, threads);
      most = std::max(most, team);
      fewest = std::min(fewest, team);
    }
    EXPECT_EQ(most, 2 * threads + 1);
    EXPECT_EQ(fewest, std::max(1, threads - 1));
  }
}

}  // namespace
}  // namespace mycc
