// The wall clock, for times that are stored or shown. Durations are measured by std::chrono::steady_clock.
#pragma once

#include <cstdint>

namespace mycc {

// Microseconds since 1970.
int64_t SystemUnixMicros();

}  // namespace mycc
