// Strains a CPU kernel while it is proven: teams of other sizes than it was tuned for, more threads than
// processors, and a busy neighbour on one processor after the other. Thread rule: for one thread; the
// neighbour is a thread of its own.
#pragma once

#include <atomic>
#include <thread>

namespace mycc {

// The number of threads of the team in launch `i`, for a kernel that was tuned for `threads`. Small teams are
// rare: they are slow.
int StrainedTeam(int i, int threads);

// From now on, the OpenMP regions of this thread run on teams of `threads`.
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
