// What a kernel's source calls when it runs on the CPU; see host_threads.h. Without standard headers, which
// would take most of the time to compile a kernel.
#pragma once

#include <stdint.h>

namespace mycc {

inline constexpr int kHostSharedBytes = 256 * 1024;

struct HostThreads {
  int (*thread)();
  int (*block)();
  // Waits until so many threads (0: the block's) have come to the barrier.
  void (*meet)(int barrier, int threads);
  // The value that lane `from` of the warp brings; of the lanes in `mask`, which all come.
  uint64_t (*exchange)(unsigned mask, uint64_t value, int from);
  unsigned (*ballot)(unsigned mask, bool condition);
};
}  // namespace mycc
