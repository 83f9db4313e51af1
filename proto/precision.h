// How precisely a time is known: its confidence interval, whether that is wide, and whether a time ties with
// the fastest. Pure functions.
#pragma once

#include <algorithm>
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

// Whether a timing cannot be told from the fastest one of its round: their intervals overlap, and it is not
// more than 2 % slower. In a noisy round intervals are wide, and what is likely to be slower is not chosen.
// Without an interval, or with one that is no number, the time alone is compared.
inline bool TiesWith(const v1::Timing& timing, const v1::Timing& fastest) {
  constexpr double kMostBehind = 1.02;
  const double low =
      timing.ci_low_seconds() > 0 ? std::min(timing.ci_low_seconds(), timing.seconds()) : timing.seconds();
  return low <= std::max(fastest.seconds(), fastest.ci_high_seconds()) &&
         timing.seconds() <= kMostBehind * fastest.seconds();
}

// A wide interval in words: "known to +-12 % only"; empty for a narrow one.
inline std::string WideText(double relative_width) {
  if (std::isinf(relative_width)) return "of one sample";
  return relative_width > kWideInterval ? absl::StrFormat("known to +-%.0f %% only", 50 * relative_width)
                                        : "";
}

}  // namespace mycc
