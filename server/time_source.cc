#include "server/time_source.h"

#include <chrono>

#include "base/clock.h"

namespace mycc {
namespace {

class StandardTime final : public TimeSource {
 public:
  double Seconds() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  int64_t UnixMicros() const override { return SystemUnixMicros(); }
};

}  // namespace

const TimeSource& SystemTime() {
  static const StandardTime time;
  return time;
}

}  // namespace mycc
