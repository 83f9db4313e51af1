// Reads the words of --deadline. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace mycc {

// "18:00", the next one in `zone`; "2026-12-01T18:00", in `zone`, or with an offset as RFC 3339 has it; "2h",
// "90m" from `now`. Micros since 1970. Misuse for other words, and for a time that is over.
absl::StatusOr<int64_t> ParseDeadline(const std::string& text, absl::Time now, absl::TimeZone zone);

}  // namespace mycc
