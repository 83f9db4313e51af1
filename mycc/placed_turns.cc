#include "mycc/placed_turns.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/status.h"
#include "base/trimmed_mean.h"
#include "codegen/runtime/arguments.h"
#include "codegen/runtime/placement.h"
#include "mycc/library_workload.h"
#include "mycc/stopwatch.h"

namespace mycc {
namespace {

constexpr int kPlacements = 16;
constexpr int kFewestPlacements = MedianInterval::kFewestSamples;
constexpr double kWarmUpAgainSeconds = 2e-3;  // the clocks have settled at the first placement

// One of the two at a placement, ready to be timed.
struct Placed {
  std::unique_ptr<Library> library;
  std::optional<Arguments> arguments;
  std::unique_ptr<Stopwatch> stopwatch;
};

absl::Status Place(const PlacedFunction& what, const std::vector<NDArray>& inputs, int placement,
                   const BenchOptions& options, Placed* placed) {
  MYCC_ASSIGN_OR_RETURN(placed->library, Library::Open(what.library, options.device));
  MYCC_ASSIGN_OR_RETURN(Arguments arguments,
                        Arguments::Create(placed->library.get(), what.function, placement));
  placed->arguments.emplace(std::move(arguments));
  Fill(inputs, &*placed->arguments);
  MYCC_RETURN_IF_ERROR(placed->arguments->Pack());
  return placed->arguments->Call();
}

absl::StatusOr<Turns> TurnsAt(int placement, const PlacedFunction& first, const PlacedFunction& second,
                              const std::vector<NDArray>& inputs, const BenchOptions& options,
                              const SamplingPlan& plan) {
  const Spacer spacer(placement);
  const bool swapped = placement % 2 == 0;
  Placed one, other;
  MYCC_RETURN_IF_ERROR(swapped ? Place(second, inputs, placement, options, &other)
                               : Place(first, inputs, placement, options, &one));
  MYCC_RETURN_IF_ERROR(swapped ? Place(first, inputs, placement, options, &one)
                               : Place(second, inputs, placement, options, &other));
  const double warm_up = placement == 1 ? kWarmUpSeconds : kWarmUpAgainSeconds;
  for (Placed* const placed : {&one, &other}) {
    MYCC_ASSIGN_OR_RETURN(placed->stopwatch,
                          StopwatchFor(placed->library.get(), &*placed->arguments, options.cold, warm_up));
  }
  return TakeTurns(one.stopwatch.get(), other.stopwatch.get(), plan, /*first_begins=*/!swapped);
}

MedianInterval OverPlacements(const std::vector<double>& medians) {
  const TrimmedMean mean = TrimmedGeometricMeanOf(medians);
  return {.median = mean.mean, .low = mean.low, .high = mean.high, .samples = medians.size()};
}

}  // namespace

absl::StatusOr<PlacedTimes> TimeAtPlacements(const PlacedFunction& first, const PlacedFunction& second,
                                             const std::vector<NDArray>& inputs,
                                             const BenchOptions& options) {
  const int placements = options.repeats > 0 ? std::min(options.repeats, kPlacements) : kPlacements;
  std::vector<double> of_first, of_second, ratios;
  PlacedTimes times;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < placements; ++i) {
    // Loading and filling count too, where they take long.
    if (options.repeats == 0 && i >= kFewestPlacements && SecondsSince(start) > 2 * options.seconds) break;
    const SamplingPlan plan = {
        .repeats = options.repeats > 0 ? (options.repeats - 1 - i) / placements + 1 : 0,  // the sum is right
        .seconds = options.seconds / placements};
    MYCC_ASSIGN_OR_RETURN(const Turns turns, TurnsAt(i + 1, first, second, inputs, options, plan));
    of_first.push_back(MedianOf(turns.first).median);
    of_second.push_back(MedianOf(turns.second).median);
    ratios.push_back(MedianOf(turns.ratios).median);
    times.turns += turns.ratios.size();
  }
  times.first = OverPlacements(of_first);
  times.second = OverPlacements(of_second);
  times.ratio = OverPlacements(ratios);
  return times;
}

}  // namespace mycc
