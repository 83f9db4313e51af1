// A result with a time, for tests of final rounds.
#pragma once

#include "proto/records.pb.h"

namespace mycc {

inline v1::MeasureResult Timed(double seconds, double half_interval = 0.005) {
  v1::MeasureResult result;
  result.set_status(v1::MEASURE_STATUS_OK);
  v1::Timing& timing = *result.mutable_timing();
  timing.set_protocol(v1::TIMING_PROTOCOL_WARM);
  timing.set_timer_version(1);
  timing.set_seconds(seconds);
  timing.set_ci_low_seconds(seconds * (1 - half_interval));
  timing.set_ci_high_seconds(seconds * (1 + half_interval));
  result.mutable_verification()->set_passed(true);
  result.mutable_device()->set_device("cpu");
  return result;
}

}  // namespace mycc
