// The time, passed in so that a test of an expiring lease needs no sleep. Thread rule: thread-safe.
#pragma once

#include <cstdint>

namespace mycc {

class TimeSource {
 public:
  virtual ~TimeSource() = default;
  virtual double Seconds() const = 0;      // monotonic, from an arbitrary origin
  virtual int64_t UnixMicros() const = 0;  // for records and people; never for durations
};

const TimeSource& SystemTime();

}  // namespace mycc
