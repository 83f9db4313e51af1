// How many trials a job keeps in flight, and how many of them one device leases at once: by the number of
// devices that can measure them. Pure functions.
//
// A narrow farm needs no more than what a search proposes anyway: two generations. There the window is the
// least one, 0 or what a small budget asks for (tuner/scheduler/generation_plan.h), and the candidates of a
// job do not depend on how many workers there are. In a wider farm each device has a trial that is measured,
// one that is on its way, and one that waits; and two more, since trials take different times: a search goes
// on when the slowest of its oldest generation is known. A window is a power of two, grows at once, and
// shrinks only when a quarter of it would do: so it seldom changes, although workers come and go. It is
// recorded with each proposal.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "tuner/scheduler/proposal_window.h"

namespace mycc {

// Devices for each job.
inline constexpr int64_t kNarrowFarm = 32;

// The window of the next proposal of a job that has `devices` devices for itself, after one with the window
// `before`; `least`: of a narrow farm. Without devices, which is so just after a restart, it stays.
inline uint32_t WindowFor(int64_t devices, uint32_t before, uint32_t least = 0) {
  constexpr int64_t kTrialsOfDevice = 5, kMost = int64_t{1} << 20;
  if (devices <= 0) return before;
  const auto trials = static_cast<uint32_t>(std::min(kTrialsOfDevice * devices, kMost));
  if (before == kNoneUnseen) before = 0;
  const uint32_t needed = devices <= kNarrowFarm ? 0 : std::bit_ceil(trials);
  uint32_t window = before;
  if (needed >= before) window = needed;
  if (needed < before && needed <= before / 4) window = std::max(needed, before / 2);
  if (least == kNoneUnseen) return window == 0 ? least : window;
  return devices <= kNarrowFarm && window <= least ? least : window;
}

// The number of trials that a device gets of the `wanted` ones: where there are fewer trials than devices
// want, no more than half of its share of the `open` ones, which wait or are leased: the other half is for
// the time in which it reports and asks again.
inline int ShareOf(int wanted, int64_t open, int64_t devices) {
  constexpr int64_t kTurns = 2;
  if (devices <= kNarrowFarm) return wanted;
  return static_cast<int>(std::min<int64_t>(wanted, std::max<int64_t>(1, open / (kTurns * devices))));
}

}  // namespace mycc
