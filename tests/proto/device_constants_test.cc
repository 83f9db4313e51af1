// A worker tells the constants of a device: sound ones are kept, others are refused.
#include "proto/device_constants.h"

#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::DeviceConstants Told(const std::map<std::string, double>& values, uint32_t version = kConstantsVersion) {
  v1::DeviceConstants constants;
  constants.set_version(version);
  constants.mutable_values()->insert(values.begin(), values.end());
  return constants;
}

TEST(DeviceConstantsTest, EachHasANameAUnitAndBounds) {
  std::set<std::string_view> names;
  for (const DeviceConstant& row : DeviceConstantRows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_LT(row.least, row.most) << row.name;
    EXPECT_GT(row.least, 0) << row.name;
    EXPECT_NE(row.meaning, "") << row.name;
    EXPECT_EQ(row.unit.empty(), row.name == kThreadsConstant) << row.name;
  }
}

TEST(DeviceConstantsTest, WhatIsSoundIsKept) {
  const v1::DeviceConstants told = Told({{kClockConstant, 3e9}, {kMemoryLatency, 1e-7}});
  std::vector<std::string> refused;
  const v1::DeviceConstants sound = SoundConstants(told, &refused);
  EXPECT_THAT(refused, IsEmpty());
  EXPECT_EQ(sound.values_size(), 2);
  EXPECT_EQ(ConstantOf(sound, kClockConstant), 3e9);
  EXPECT_EQ(ConstantOf(sound, kPeakOfAll), 0);
}

TEST(DeviceConstantsTest, WhatCannotBeRightIsRefusedAlone) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<std::string> refused;
  const v1::DeviceConstants sound = SoundConstants(Told({{kClockConstant, std::nan("")},
                                                         {kPeakOfThread, -1e11},
                                                         {kL2OfThread, kInfinity},
                                                         {kMemoryOfThread, 0},
                                                         {kPeakOfAll, 1e12},
                                                         {"mi\npeak", 1}}),
                                                   &refused);
  EXPECT_EQ(sound.values_size(), 1);
  EXPECT_EQ(ConstantOf(sound, kPeakOfAll), 1e12);
  EXPECT_THAT(refused, ElementsAre("the constant clock_cycles_per_second is nan; expected 1e+08 to 2e+10",
                                   HasSubstr("l2_bytes_per_second_one_thread is inf; expected"),
                                   HasSubstr("memory_bytes_per_second_one_thread is 0; expected"),
                                   "an unknown constant \"mi\\npeak\"",
                                   HasSubstr("peak_flops_per_second_one_thread is -1e+11; expected")));
}

TEST(DeviceConstantsTest, NothingIsKeptOfAnotherVersionOrOfTooMany) {
  std::vector<std::string> refused;
  EXPECT_THAT(SoundConstants(Told({{kClockConstant, 3e9}}, kConstantsVersion + 1), &refused).values(),
              IsEmpty());
  EXPECT_THAT(refused, ElementsAre(absl::StrCat("constants of version ", kConstantsVersion + 1,
                                                "; expected version ", kConstantsVersion)));
  std::map<std::string, double> many = {{kClockConstant, 3e9}};
  for (int i = 0; i < 100; ++i) many[absl::StrCat("constant_", i)] = 1;
  refused.clear();
  EXPECT_THAT(SoundConstants(Told(many), &refused).values(), IsEmpty());
  EXPECT_THAT(refused, ElementsAre("101 constants; expected at most 64"));
}

TEST(DeviceConstantsTest, OnlyTheFirstRefusalsAreTold) {
  std::map<std::string, double> unknown;
  for (int i = 0; i < 40; ++i) unknown[absl::StrCat("constant_", i)] = 1;
  std::vector<std::string> refused;
  EXPECT_THAT(SoundConstants(Told(unknown), &refused).values(), IsEmpty());
  ASSERT_EQ(refused.size(), 9u);
  EXPECT_EQ(refused.back(), "32 more like these");
}

}  // namespace
}  // namespace mycc
