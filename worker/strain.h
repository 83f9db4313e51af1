// Strains a CPU kernel while it is proven: teams of other sizes than it was tuned for, more threads than
// processors, and a busy neighbour on one processor after the other. Thread rule: for one thread; the
// neighbour is a thread of its own.
#pragma once

#include <atomic>
#include <thread>

namespace mycc {

// How many threads the team of launch `i` has, where a kernel was tuned for `threads`. Small teams come
// seldom: they are slow.
int StrainedTeam(int i, int threads);

// Has the regions of this thread run on teams of `threads` from now on.
void SetTeam(int threads);

// Works in bursts, each on another processor, until it is destroyed.
class BusyNeighbour {
 public:
  BusyNeighbour();
  ~BusyNeighbour();
  BusyNeighbour(const BusyNeighbour&) = delete;
  BusyNeighbour& operator=(const BusyNeighbour&) = delete;

 private:
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace mycc
