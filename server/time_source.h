// Time, as an argument: a lease that expires is a unit test without a sleep. Thread rule: thread-safe.
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
