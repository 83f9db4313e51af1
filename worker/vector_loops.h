// Loops of the widest vectors that this CPU has, for micro-benchmarks: multiply-adds in registers, and
// reading memory. Thread rule: re-entrant.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mycc {

struct VectorLoops {
  int lanes;  // f32 numbers of a vector
  // kChains multiply-adds a round that do not wait for each other, and one a round that waits for the last.
  void (*independent)(int64_t rounds);
  void (*dependent)(int64_t rounds);
  // Reads `bytes`, a multiple of kReadStep, from memory that is aligned to a line.
  void (*read)(const void* from, size_t bytes);

  static constexpr int kChains = 12;  // hide the latency of a multiply-add on every core since Haswell
  static constexpr size_t kReadStep = 256;
};

const VectorLoops& WidestLoops();

}  // namespace mycc
