// Checks that a kernel leaves the same bits at every launch: it keeps the first launch's outputs, and
// compares every later launch's bit by bit, after poisoning. Its error texts serve CPUs and GPUs; the class
// is for CPUs. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "codegen/expr/buffer.h"

namespace mycc {

// The difference between an output after a launch and after the first launch.
struct Difference {
  uint64_t elements = 0;
  uint64_t first = 0;  // the index of the first of them
};
// DataLoss where there is one: "launch 17 left other bits than launch 1 in 3 of 4096 elements of output y,
// the first of them element 812". Launches count from 1.
absl::Status SameBits(const Difference& difference, uint32_t launch, const Buffer& output);

// Launches of every candidate beside the timed ones: what fits into a share of the time that timing may take.
constexpr double kRepeatShare = 0.02;
constexpr int kMostRepeats = 8;
// The number of launches of `seconds` each that fit into a budget, between `fewest` and `most`.
int LaunchesWithin(double budget_seconds, double seconds, int fewest, int most);

class Repetition {
 public:
  struct Output {
    Buffer tensor;
    const uint8_t* data;  // where every launch leaves it; of the first one now
  };
  explicit Repetition(std::vector<Output> outputs);

  // Compares the outputs of one more launch; SameBits's error.
  absl::Status Check();
  // From now on, launches leave their outputs there: the same tensors in other memory.
  void MoveTo(std::vector<Output> outputs) { outputs_ = std::move(outputs); }

  uint32_t launches() const { return launches_; }

 private:
  std::vector<Output> outputs_;
  std::vector<std::vector<uint8_t>> first_;
  uint32_t launches_ = 1;
};

}  // namespace mycc
