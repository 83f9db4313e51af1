#include "server/device_history.h"

#include <algorithm>

namespace mycc {

void DeviceSeries::Add(const DevicePoint& point) {
  if (!points_.empty() && point.unix_micros < points_.back().unix_micros + interval_micros_) return;
  if (points_.size() >= kMostPoints) {
    for (size_t i = 0; 2 * i < points_.size(); ++i) points_[i] = points_[2 * i];
    points_.resize((points_.size() + 1) / 2);
    interval_micros_ *= 2;
  }
  points_.push_back(point);
}

void DeviceHistory::Add(const Key& key, const DevicePoint& point) {
  if (!series_.contains(key) && series_.size() >= kMostDevices) {
    series_.erase(std::ranges::min_element(series_, [](const auto& a, const auto& b) {
      return a.second.last_unix_micros() < b.second.last_unix_micros();
    }));
  }
  series_[key].Add(point);
}

}  // namespace mycc
