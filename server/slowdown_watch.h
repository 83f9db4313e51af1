// Watches whether a device has become slow, by the baseline kernel that its worker times beside each
// candidate. Pure bookkeeping. Thread rule: thread-compatible.
#pragma once

#include <deque>

namespace mycc {

class SlowdownWatch {
 public:
  // `usual_seconds`: the baseline time when the device was last healthy; 0: unknown.
  explicit SlowdownWatch(double usual_seconds = 0) : usual_(usual_seconds) {}

  void Add(double seconds);

  // The median of the latest times relative to the usual one; 0 while unknown.
  double ratio() const;
  // All of the latest times are far above the usual one, so the device is slow, not the moment.
  bool failing() const;
  // The device's time when it is healthy; 0 while unknown.
  double usual_seconds() const;

 private:
  double usual_;
  std::deque<double> latest_;
  std::deque<double> history_;
};

}  // namespace mycc
