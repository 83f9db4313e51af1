// Times functions of compiled libraries: one alone, or two in turn, which then see the same clocks and the
// same neighbours. Thread rule: one owner, which times one function at a time.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/runtime/arguments.h"
#include "codegen/runtime/library.h"
#include "mycc/samples.h"

namespace mycc {

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  // Adds samples, in seconds of one call: one, or as many as are cheapest to take together.
  virtual absl::Status Sample(std::vector<double>* seconds) = 0;
};

inline constexpr double kWarmUpSeconds = 20e-3;  // until clocks and caches have settled

// On the CPU or GPU that the library is for, warmed up, a CPU for `warm_up_seconds`. Cold: the arguments are
// out of all caches, a GPU's out of L2, when a call begins. REQUIRES: the arguments are packed, the function
// has been called once without an error, and both outlive the stopwatch.
absl::StatusOr<std::unique_ptr<Stopwatch>> StopwatchFor(Library* library, Arguments* arguments, bool cold,
                                                        double warm_up_seconds = kWarmUpSeconds);

absl::StatusOr<std::vector<double>> TakeSamples(Stopwatch* stopwatch, const SamplingPlan& plan);

struct Turns {
  std::vector<double> first, second;  // seconds
  std::vector<double> ratios;         // of each turn: the second's median over the first's
};
// The plan's seconds are for each of the two. The one that begins changes from turn to turn; `first_begins`
// says it of the first turn.
absl::StatusOr<Turns> TakeTurns(Stopwatch* first, Stopwatch* second, const SamplingPlan& plan,
                                bool first_begins = true);

}  // namespace mycc
