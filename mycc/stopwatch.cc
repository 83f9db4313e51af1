#include "mycc/stopwatch.h"

#include <chrono>

#include "base/status.h"
#include "mycc/cpu_stopwatch.h"
#include "mycc/cuda_stopwatch.h"

namespace mycc {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Sorting all samples each time would disturb what is measured.
bool IsTimeToLook(size_t count, const SamplingPlan& plan, double elapsed_seconds) {
  return plan.repeats > 0 || elapsed_seconds > plan.seconds || (count & (count - 1)) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Stopwatch>> StopwatchFor(Library* library, Arguments* arguments, bool cold) {
  return library->on_cuda() ? CudaStopwatch(library, arguments, cold)
                            : CpuStopwatch(library, arguments, cold);
}

absl::StatusOr<std::vector<double>> TakeSamples(Stopwatch* stopwatch, const SamplingPlan& plan) {
  std::vector<double> samples;
  for (const Clock::time_point start = Clock::now();;) {
    const double elapsed = Since(start);
    if (IsTimeToLook(samples.size(), plan, elapsed) && IsEnough(samples, plan, elapsed)) return samples;
    MYCC_RETURN_IF_ERROR(stopwatch->Sample(&samples));
  }
}

absl::StatusOr<Turns> TakeTurns(Stopwatch* first, Stopwatch* second, const SamplingPlan& plan) {
  const SamplingPlan both = {plan.repeats, 2 * plan.seconds};
  Turns turns;
  for (const Clock::time_point start = Clock::now();;) {
    const double elapsed = Since(start);
    const size_t count = turns.ratios.size();
    if (IsTimeToLook(count, both, elapsed) && IsEnough(turns.ratios, both, elapsed)) return turns;
    std::vector<double> of_first, of_second;
    const bool first_begins = count % 2 == 0;
    if (first_begins) MYCC_RETURN_IF_ERROR(first->Sample(&of_first));
    MYCC_RETURN_IF_ERROR(second->Sample(&of_second));
    if (!first_begins) MYCC_RETURN_IF_ERROR(first->Sample(&of_first));
    turns.ratios.push_back(MedianOf(of_second).median / MedianOf(of_first).median);
    turns.first.insert(turns.first.end(), of_first.begin(), of_first.end());
    turns.second.insert(turns.second.end(), of_second.begin(), of_second.end());
  }
}

}  // namespace mycc
