// A clock that hardly moves while the server's loop stands still (its process was stopped, its machine
// overloaded, or a turn was long). The server cannot hear workers then, so no lease runs out and no worker
// counts as silent. Thread rule: thread-compatible.
#pragma once

#include <algorithm>
#include <cstdint>

#include "server/time_source.h"

namespace mycc {

class LoopClock final : public TimeSource {
 public:
  // `time` outlives it. A turn counts for at most `longest_step` seconds, however long it was.
  LoopClock(const TimeSource* time, double longest_step)
      : time_(time), longest_step_(longest_step), last_(time->Seconds()), now_(last_) {}

  // The loop turns again. Between two calls the clock stands.
  void Turn() {
    const double real = time_->Seconds();
    now_ += std::clamp(real - last_, 0.0, longest_step_);
    last_ = real;
  }

  double Seconds() const override { return now_; }
  int64_t UnixMicros() const override { return time_->UnixMicros(); }

 private:
  const TimeSource* const time_;
  const double longest_step_;
  double last_;  // of `time_`
  double now_;
};

}  // namespace mycc
