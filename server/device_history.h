// How a device changed over time: its baseline relative to the usual one, its temperature and its clock. A
// series keeps a bounded number of points over any span of time: when it is full, every second point goes and
// the interval doubles. Thread rule: thread-compatible. Time is an argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mycc {

struct DevicePoint {
  int64_t unix_micros = 0;
  double baseline_ratio = 0;       // 0: unknown
  double temperature_celsius = 0;  // likewise
  double clock_mhz = 0;            // likewise
};

class DeviceSeries {
 public:
  static constexpr size_t kMostPoints = 240;

  // Keeps the point where the last one is old enough.
  void Add(const DevicePoint& point);
  const std::vector<DevicePoint>& points() const { return points_; }
  int64_t last_unix_micros() const { return points_.empty() ? 0 : points_.back().unix_micros; }

 private:
  int64_t interval_micros_ = 5'000'000;
  std::vector<DevicePoint> points_;
};

// The series of a server's devices, also of those that are away: a worker that is started again goes on with
// its own. The series that was added to longest ago gives way to one too many.
class DeviceHistory {
 public:
  static constexpr size_t kMostDevices = 4096;
  using Key = std::pair<std::string, std::string>;  // worker, device

  void Add(const Key& key, const DevicePoint& point);
  const std::map<Key, DeviceSeries>& series() const { return series_; }

 private:
  std::map<Key, DeviceSeries> series_;
};

}  // namespace mycc
