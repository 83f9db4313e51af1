// The functions that a kernel's source calls when it runs on the CPU; see host_threads.h. Without standard
// headers, which would take most of the time to compile a kernel.
#pragma once

#include <stdint.h>

namespace mycc {

inline constexpr int kHostSharedBytes = 256 * 1024;  // of one block
inline constexpr int kHostClusterBlocks = 8;

struct HostThreads {
  int (*thread)();  // of the block
  int (*block)();   // of the grid
  int (*rank)();    // of the block, in its cluster
  // Waits until `threads` threads (0: the block's) have come to the barrier of this number.
  void (*barrier)(int number, int threads);
  // The value that lane `from` of the warp brings; of the lanes in `mask`, which all come.
  uint64_t (*exchange)(unsigned mask, uint64_t value, int from);
  unsigned (*ballot)(unsigned mask, bool condition);
  // At the barrier of all threads of the cluster; waits until all that are there have arrived.
  void (*arrive_in_cluster)();
  void (*wait_for_cluster)();
  // Others go on, one of whom will do what this thread waits for; or this thread has done something.
  void (*wait)();
  void (*done)();
};
}  // namespace mycc
