#include "base/clock.h"

#include <chrono>

namespace mycc {

int64_t SystemUnixMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace mycc
