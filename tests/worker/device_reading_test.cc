// The readings of a CPU, from files as the kernel shows them.
#include "worker/device_reading.h"

#include <filesystem>
#include <fstream>

#include "base/temporary_folder.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

class DeviceReadingTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(folder_.path()) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
};

TEST_F(DeviceReadingTest, ReadsTheHottestSensorOfTheCpuAndTheMeanClock) {
  Write("class/hwmon/hwmon0/name", "nvme");
  Write("class/hwmon/hwmon0/temp1_input", "91000");
  Write("class/hwmon/hwmon1/name", "coretemp");
  Write("class/hwmon/hwmon1/temp1_input", "61000");
  Write("class/hwmon/hwmon1/temp2_input", "64500");
  Write("class/hwmon/hwmon1/temp2_max", "99000");
  Write("devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000");
  Write("devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3000000");
  const v1::DeviceReading reading = CpuReader(folder_.path()).Read();
  EXPECT_EQ(reading.device(), "cpu");
  EXPECT_EQ(reading.temperature_celsius(), 64.5);
  EXPECT_EQ(reading.clock_mhz(), 2500u);
  EXPECT_EQ(reading.throttle(), "");
}

TEST_F(DeviceReadingTest, ReadsTheThermalZoneWhereThereIsNoSensor) {
  Write("class/thermal/thermal_zone0/type", "acpitz");
  Write("class/thermal/thermal_zone0/temp", "99000");
  Write("class/thermal/thermal_zone1/type", "x86_pkg_temp");
  Write("class/thermal/thermal_zone1/temp", "52000");
  EXPECT_EQ(CpuReader(folder_.path()).Read().temperature_celsius(), 52);
}

TEST_F(DeviceReadingTest, ThrottlingIsNewThrottling) {
  const std::string count = "devices/system/cpu/cpu0/thermal_throttle/package_throttle_count";
  Write(count, "7");
  CpuReader reader(folder_.path());
  EXPECT_EQ(reader.Read().throttle(), "");
  EXPECT_EQ(reader.Read().throttle(), "");
  Write(count, "9");
  EXPECT_EQ(reader.Read().throttle(), "heat");
  EXPECT_EQ(reader.Read().throttle(), "");
}

TEST_F(DeviceReadingTest, WhatTheSystemDoesNotTellIsLeftOut) {
  const v1::DeviceReading reading = CpuReader(folder_.path()).Read();
  EXPECT_EQ(reading.temperature_celsius(), 0);
  EXPECT_EQ(reading.clock_mhz(), 0u);
}

}  // namespace
}  // namespace mycc
