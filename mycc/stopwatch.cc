#include "mycc/stopwatch.h"

#include "base/status.h"
#include "mycc/cpu_stopwatch.h"
#include "mycc/cuda_stopwatch.h"

namespace mycc {
namespace {

// Sorting all samples each time would disturb what is measured.
bool IsTimeToLook(size_t count, const SamplingPlan& plan, double elapsed_seconds) {
  return plan.repeats > 0 || elapsed_seconds > plan.seconds || (count & (count - 1)) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Stopwatch>> StopwatchFor(Library* library, Arguments* arguments, bool cold,
                                                        double warm_up_seconds) {
  return library->on_cuda() ? CudaStopwatch(library, arguments, cold)
                            : CpuStopwatch(library, arguments, cold, warm_up_seconds);
}

absl::StatusOr<std::vector<double>> TakeSamples(Stopwatch* stopwatch, const SamplingPlan& plan) {
  std::vector<double> samples;
  for (const auto start = std::chrono::steady_clock::now();;) {
    const double elapsed = SecondsSince(start);
    if (IsTimeToLook(samples.size(), plan, elapsed) && IsEnough(samples, plan, elapsed)) return samples;
    MYCC_RETURN_IF_ERROR(stopwatch->Sample(&samples));
  }
}

absl::StatusOr<Turns> TakeTurns(Stopwatch* first, Stopwatch* second, const SamplingPlan& plan,
                                bool first_begins) {
  const SamplingPlan both = {plan.repeats, 2 * plan.seconds};
  Turns turns;
  for (const auto start = std::chrono::steady_clock::now();;) {
    const double elapsed = SecondsSince(start);
    const size_t count = turns.ratios.size();
    if (IsTimeToLook(count, both, elapsed) && IsEnough(turns.ratios, both, elapsed)) return turns;
    std::vector<double> of_first, of_second;
    const bool first_goes = (count % 2 == 0) == first_begins;
    if (first_goes) MYCC_RETURN_IF_ERROR(first->Sample(&of_first));
    MYCC_RETURN_IF_ERROR(second->Sample(&of_second));
    if (!first_goes) MYCC_RETURN_IF_ERROR(first->Sample(&of_first));
    turns.ratios.push_back(MedianOf(of_second).median / MedianOf(of_first).median);
    turns.first.insert(turns.first.end(), of_first.begin(), of_first.end());
    turns.second.insert(turns.second.end(), of_second.begin(), of_second.end());
  }
}

}  // namespace mycc
