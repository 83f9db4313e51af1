// A random number generator with the same numbers on every machine and standard library, unlike std's
// distributions. It is a value, seeded anew for each generation, so that a generation does not depend on how
// many numbers earlier ones drew.
#pragma once

#include <cstdint>

namespace mycc {

class Rng {
 public:
  explicit Rng(uint64_t seed, uint64_t stream = 0) : state_(Mix(seed) ^ Mix(stream + 0x632be59bd9b4e019)) {}

  // SplitMix64: a counter through a mixing function.
  uint64_t Next() { return Mix(state_ += 0x9e3779b97f4a7c15); }
  // Uniform in [0, n). REQUIRES: n > 0.
  int Below(int n) {
    return static_cast<int>((static_cast<unsigned __int128>(Next()) * static_cast<uint64_t>(n)) >> 64);
  }
  // Uniform in [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  bool Chance(double probability) { return Unit() < probability; }

 private:
  static uint64_t Mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  uint64_t state_;
};

}  // namespace mycc
