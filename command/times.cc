#include "command/times.h"

#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace mycc {

std::string FormatSeconds(double seconds) {
  if (seconds >= 1) return absl::StrFormat("%.3f s", seconds);
  if (seconds >= 1e-3) return absl::StrFormat("%.3f ms", seconds * 1e3);
  if (seconds >= 1e-6) return absl::StrFormat("%.3f us", seconds * 1e6);
  return absl::StrFormat("%.3f ns", seconds * 1e9);
}

std::string FormatUnixMicros(int64_t unix_micros) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%SZ", absl::FromUnixMicros(unix_micros), absl::UTCTimeZone());
}

}  // namespace mycc
