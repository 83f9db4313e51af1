// The time of day for deadlines and quotas, on a host whose clock may be set. A jump of more than a few
// seconds is believed when it has stood for a minute; until then the time goes on as before. So a clock that
// is wrong for a moment ends no job, and one that is put right counts soon. Thread rule: thread-compatible.
#pragma once

#include <cstdint>

#include "server/time_source.h"

namespace mycc {

class WallClock {
 public:
  // `time` outlives it. The first reading is believed.
  explicit WallClock(const TimeSource* time);

  // Looks at the host's clock.
  void Tick();
  int64_t UnixMicros() const;

 private:
  // The host's clock less the steady one.
  int64_t Offset() const;

  const TimeSource* const time_;
  int64_t believed_;
  int64_t jumped_to_ = 0;
  double jumped_at_ = -1;  // by the steady clock; negative: there was no jump
};

}  // namespace mycc
