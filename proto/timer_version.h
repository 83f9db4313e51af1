// The version of the rules by which workers time candidates (worker/timer.h). Times of different versions are
// not comparable, and only times of the newest version rank. So a server refuses times of versions that it
// does not know.
#pragma once

#include <cstdint>

namespace mycc {

inline constexpr uint32_t kTimerVersion = 1;

}  // namespace mycc
