// The memory of devices has a bounded size, over any time.
#include "server/device_history.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

constexpr int64_t kSecond = 1'000'000;

TEST(DeviceHistoryTest, ASeriesCoversMonthsInAFewPoints) {
  DeviceSeries series;
  const int64_t month = 30 * 24 * 3600;
  for (int64_t second = 0; second < month; second += 60)
    series.Add({.unix_micros = second * kSecond, .baseline_ratio = 1});
  EXPECT_LE(series.points().size(), DeviceSeries::kMostPoints);
  EXPECT_GE(series.points().size(), DeviceSeries::kMostPoints / 2);
  EXPECT_EQ(series.points().front().unix_micros, 0);
  EXPECT_GE(series.points().back().unix_micros, (month - 24 * 3600) * kSecond);
  for (size_t i = 1; i < series.points().size(); ++i)
    EXPECT_GT(series.points()[i].unix_micros, series.points()[i - 1].unix_micros);
}

TEST(DeviceHistoryTest, PointsThatComeTooSoonAreLeftOut) {
  DeviceSeries series;
  series.Add({.unix_micros = 100 * kSecond, .temperature_celsius = 40});
  series.Add({.unix_micros = 101 * kSecond, .temperature_celsius = 41});
  series.Add({.unix_micros = 110 * kSecond, .temperature_celsius = 42});
  ASSERT_EQ(series.points().size(), 2u);
  EXPECT_EQ(series.points()[1].temperature_celsius, 42);
}

TEST(DeviceHistoryTest, TheDeviceThatWasHeardLongestAgoGivesWay) {
  DeviceHistory history;
  for (size_t i = 0; i <= DeviceHistory::kMostDevices; ++i)
    history.Add({absl::StrCat("w", i), "cpu"}, {.unix_micros = static_cast<int64_t>(i + 1) * kSecond});
  EXPECT_EQ(history.series().size(), DeviceHistory::kMostDevices);
  EXPECT_FALSE(history.series().contains({"w0", "cpu"}));
  EXPECT_TRUE(history.series().contains({"w1", "cpu"}));
}

}  // namespace
}  // namespace mycc
