// How precisely a time is known: its confidence interval, and whether that is wide. Pure functions.
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_format.h"
#include "proto/records.pb.h"

namespace mycc {

// Beyond this, people are told: two times that differ by less may be equal.
inline constexpr double kWideInterval = 0.10;

// The width of a confidence interval, relative to the time; 0 where it is not known, infinite where the time
// is of one sample.
inline double RelativeWidth(double low, double high, double seconds) {
  return seconds > 0 && high > low && low > 0 ? (high - low) / seconds : 0;
}
inline double RelativeWidth(const v1::Timing& timing) {
  if (timing.samples_seconds_size() == 1) return std::numeric_limits<double>::infinity();
  return RelativeWidth(timing.ci_low_seconds(), timing.ci_high_seconds(), timing.seconds());
}

// A wide interval in words: "known to +-12 % only"; empty for a narrow one.
inline std::string WideText(double relative_width) {
  if (std::isinf(relative_width)) return "of one sample";
  return relative_width > kWideInterval ? absl::StrFormat("known to +-%.0f %% only", 50 * relative_width)
                                        : "";
}

}  // namespace mycc
