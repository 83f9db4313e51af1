// How well a time is known. Pure functions.
#pragma once

#include "proto/records.pb.h"

namespace mycc {

// Beyond this, people are told: two times that differ by less may be equal.
inline constexpr double kWideInterval = 0.10;

// The width of a confidence interval, relative to the time; 0 where it is not known.
inline double RelativeWidth(double low, double high, double seconds) {
  return seconds > 0 && high > low && low > 0 ? (high - low) / seconds : 0;
}
inline double RelativeWidth(const v1::Timing& timing) {
  return RelativeWidth(timing.ci_low_seconds(), timing.ci_high_seconds(), timing.seconds());
}

}  // namespace mycc
