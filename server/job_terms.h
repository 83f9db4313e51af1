// The terms under which a job is run, besides what it searches: they decide when its trials have their turn,
// and may change while it runs. Thread rule: a value.
#pragma once

#include <cstdint>
#include <string>

namespace mycc {

// Priorities are from -kMostPriority to kMostPriority.
inline constexpr int kMostPriority = 10;

struct JobTerms {
  std::string owner;  // empty: of a job of an older build
  int priority = 0;
  bool only_when_idle = false;
  int64_t deadline_unix_micros = 0;  // 0: none

  bool operator==(const JobTerms&) const = default;
};

}  // namespace mycc
