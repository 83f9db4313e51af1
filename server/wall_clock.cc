#include "server/wall_clock.h"

#include <cstdlib>

namespace mycc {
namespace {

constexpr int64_t kMicrosASecond = 1000000;
constexpr int64_t kDriftMicros = 5 * kMicrosASecond;
constexpr double kStandsSeconds = 60;

}  // namespace

WallClock::WallClock(const TimeSource* time) : time_(time), believed_(Offset()) {}

int64_t WallClock::Offset() const {
  return time_->UnixMicros() - static_cast<int64_t>(time_->Seconds() * kMicrosASecond);
}

int64_t WallClock::UnixMicros() const {
  return believed_ + static_cast<int64_t>(time_->Seconds() * kMicrosASecond);
}

void WallClock::Tick() {
  const int64_t offset = Offset();
  const double now = time_->Seconds();
  if (std::llabs(offset - believed_) <= kDriftMicros) {
    believed_ = offset;
    jumped_at_ = -1;
  } else if (jumped_at_ < 0 || std::llabs(offset - jumped_to_) > kDriftMicros) {
    jumped_to_ = offset;
    jumped_at_ = now;
  } else if (now - jumped_at_ >= kStandsSeconds) {
    believed_ = offset;
    jumped_at_ = -1;
  }
}

}  // namespace mycc
