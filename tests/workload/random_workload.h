// Random valid workloads over every type and operation, and rewritings of a workload that keep what it
// computes.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "codegen/workload/workload.h"

namespace mycc {

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[Below(static_cast<int64_t>(from.size()))];
  }

 private:
  std::mt19937_64 random_;
};

Workload RandomWorkload(uint64_t seed);

// The same computation: other names, operands of commutative operations swapped, stages in another order,
// dead stages added, some stages doubled and read through their doubles. One canonical text.
Workload Disguise(const Workload& workload, uint64_t seed);

// True when two workloads are the same structure under the same names. `why` says where they part.
bool SameWorkload(const Workload& a, const Workload& b, std::string* why);

}  // namespace mycc
