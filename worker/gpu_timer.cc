#include "worker/gpu_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {
namespace {

constexpr int kMostSamples = 2 * GpuTimer::kMostInTurn, kFewestSamples = 4;  // of a graph
constexpr double kGraphSeconds = 3e-3;        // about; the rest of a budget is known after each
constexpr double kWarmSampleSeconds = 50e-6;  // shorter warm samples are made of several calls
constexpr int kMostCalls = 200;               // of a graph
constexpr double kFlushBytesASecond = 2e12;   // about
constexpr double kLeastSeconds = 1e-6;        // of a call, as far as an estimate goes
constexpr int kBaselineRuns = 3;
// About 100 us of multiply-adds on the GPUs since 2020.
constexpr int kBaselineRounds = 2600;
constexpr int64_t kBaselineThreads = int64_t{1} << 40;  // as many as the device takes at once

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Median(std::vector<double> values) { return MedianOf(std::move(values)).median; }

}  // namespace

absl::StatusOr<std::unique_ptr<GpuTimer>> GpuTimer::Create(GpuContext* device) {
  std::unique_ptr<GpuTimer> timer(new GpuTimer(device));
  MYCC_ASSIGN_OR_RETURN(timer->flushed_, device->Allocate(2 * device->l2_bytes()));
  for (int i = 0; i < kMostSamples; ++i) {
    MYCC_ASSIGN_OR_RETURN(CudaEvent start, device->MakeEvent());
    MYCC_ASSIGN_OR_RETURN(CudaEvent end, device->MakeEvent());
    timer->starts_.push_back(std::move(start));
    timer->ends_.push_back(std::move(end));
  }
  MYCC_RETURN_IF_ERROR(device->Fill(timer->flushed_.address(), 0, timer->flushed_.bytes()));
  MYCC_RETURN_IF_ERROR(device->Wait());
  return timer;
}

absl::StatusOr<double> GpuTimer::TimeOnce(GpuCall* call, double limit_seconds) {
  MYCC_RETURN_IF_ERROR(EnqueueSample(call, /*cold=*/false, /*calls=*/1, /*sample=*/0));
  MYCC_RETURN_IF_ERROR(device_->WaitAtMost(limit_seconds));
  return ends_[0].SecondsSince(starts_[0]);
}

absl::Status GpuTimer::EnqueueSample(GpuCall* call, bool cold, int calls, int sample) {
  if (cold) MYCC_RETURN_IF_ERROR(device_->Fill(flushed_.address(), 1, flushed_.bytes()));
  MYCC_RETURN_IF_ERROR(device_->Record(starts_[sample]));
  for (int i = 0; i < calls; ++i) MYCC_RETURN_IF_ERROR(call->Enqueue());
  return device_->Record(ends_[sample]);
}

int GpuTimer::CallsOf(bool cold, double call_seconds) const {
  if (cold) return 1;
  const double calls = std::ceil(kWarmSampleSeconds / std::max(call_seconds, kLeastSeconds));
  return std::clamp(static_cast<int>(calls), 1, kMostCalls / kFewestSamples);
}

double GpuTimer::SampleSeconds(bool cold, int calls, double call_seconds) const {
  const double flush = cold ? static_cast<double>(flushed_.bytes()) / kFlushBytesASecond : 0;
  return calls * std::max(call_seconds, kLeastSeconds) + flush;
}

absl::StatusOr<v1::Timing> GpuTimer::Time(GpuCall* call, const TimingPlan& plan, double probe_seconds) {
  const bool cold = plan.protocol == v1::TIMING_PROTOCOL_COLD;
  const int calls = CallsOf(cold, probe_seconds);
  const int most = std::min(kMostSamples, kMostCalls / calls);
  const int samples = std::clamp(static_cast<int>(kGraphSeconds / SampleSeconds(cold, calls, probe_seconds)),
                                 kFewestSamples, most);
  MYCC_ASSIGN_OR_RETURN(const CudaGraph graph, device_->Capture([&] {
    for (int i = 0; i < samples; ++i) MYCC_RETURN_IF_ERROR(EnqueueSample(call, cold, calls, i));
    return absl::OkStatus();
  }));
  const auto batch = [&]() -> absl::StatusOr<std::vector<double>> {
    MYCC_ASSIGN_OR_RETURN(std::vector<double> seconds, Replay(graph, samples));
    for (double& sample : seconds) sample /= calls;
    return seconds;
  };
  return TimeBatches(plan, probe_seconds, batch, Now);
}

absl::StatusOr<std::vector<v1::Timing>> GpuTimer::TimeInTurn(const std::vector<GpuCall*>& candidates,
                                                             const TimingPlan& plan, double probe_seconds) {
  const bool cold = plan.protocol == v1::TIMING_PROTOCOL_COLD;
  const int size = static_cast<int>(candidates.size());
  if (size > kMostInTurn) {
    return absl::InvalidArgumentError(
        absl::StrCat(size, " candidates to be timed in turn; expected at most ", kMostInTurn));
  }
  const int calls = CallsOf(cold, probe_seconds);
  const double turn = 2 * size * SampleSeconds(cold, calls, probe_seconds);
  const int turns = std::clamp(static_cast<int>(kGraphSeconds / turn), 1, kMostSamples / (2 * size));
  const int samples = turns * 2 * size;
  MYCC_ASSIGN_OR_RETURN(const CudaGraph graph, device_->Capture([&] {
    for (int i = 0; i < samples; ++i) {
      GpuCall* const candidate = candidates[CandidateAt(i % (2 * size), size)];
      // The others have used the cache meanwhile.
      if (!cold) MYCC_RETURN_IF_ERROR(candidate->Enqueue());
      MYCC_RETURN_IF_ERROR(EnqueueSample(candidate, cold, calls, i));
    }
    return absl::OkStatus();
  }));
  const auto batch = [&]() -> absl::StatusOr<std::vector<Turn>> {
    MYCC_ASSIGN_OR_RETURN(const std::vector<double> seconds, Replay(graph, samples));
    std::vector<Turn> taken(turns, Turn(size));
    for (int i = 0; i < samples; ++i)
      taken[i / (2 * size)][CandidateAt(i % (2 * size), size)] += seconds[i] / calls / 2;
    return taken;
  };
  MYCC_RETURN_IF_ERROR(batch().status());  // warms the device up
  return TimeTurns(plan, batch, Now);
}

absl::StatusOr<std::vector<double>> GpuTimer::Replay(const CudaGraph& graph, int samples) {
  MYCC_RETURN_IF_ERROR(device_->Launch(graph));
  MYCC_RETURN_IF_ERROR(device_->Wait());
  std::vector<double> seconds;
  for (int i = 0; i < samples; ++i) {
    MYCC_ASSIGN_OR_RETURN(const double sample, ends_[i].SecondsSince(starts_[i]));
    seconds.push_back(sample);
  }
  return seconds;
}

absl::StatusOr<double> GpuTimer::TimeBaseline() {
  const int64_t floats = flushed_.bytes() / 2 / static_cast<int64_t>(sizeof(float));
  const CuAddress to = flushed_.address(), from = to + static_cast<CuAddress>(flushed_.bytes() / 2);
  std::vector<double> seconds;
  for (int i = 0; i < kBaselineRuns; ++i) {
    MYCC_RETURN_IF_ERROR(device_->Record(starts_[i]));
    MYCC_RETURN_IF_ERROR(
        device_->Launch("mycc_baseline", kBaselineThreads, to, from, floats, int{kBaselineRounds}));
    MYCC_RETURN_IF_ERROR(device_->Record(ends_[i]));
  }
  MYCC_RETURN_IF_ERROR(device_->Wait());
  for (int i = 0; i < kBaselineRuns; ++i) {
    MYCC_ASSIGN_OR_RETURN(const double sample, ends_[i].SecondsSince(starts_[i]));
    seconds.push_back(sample);
  }
  return Median(std::move(seconds));
}

}  // namespace mycc
