#include "worker/gpu_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "base/status.h"

namespace mycc {
namespace {

constexpr int kMostSamples = 20, kFewestSamples = 4;  // of a graph
constexpr double kGraphSeconds = 3e-3;                // about; what is left of a budget is known after each
constexpr double kWarmSampleSeconds = 50e-6;          // shorter warm samples are made of several calls
constexpr int kMostCalls = 200;                       // of a graph
constexpr double kFlushBytesASecond = 2e12;           // about
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

absl::StatusOr<v1::Timing> GpuTimer::Time(GpuCall* call, const TimingPlan& plan, double probe_seconds) {
  const bool cold = plan.protocol == v1::TIMING_PROTOCOL_COLD;
  const double probe = std::max(probe_seconds, 1e-6);
  const double flush = cold ? static_cast<double>(flushed_.bytes()) / kFlushBytesASecond : 0;
  const int calls = cold ? 1
                         : std::clamp(static_cast<int>(std::ceil(kWarmSampleSeconds / probe)), 1,
                                      kMostCalls / kFewestSamples);
  const int most = std::min(kMostSamples, kMostCalls / calls);
  const int samples =
      std::clamp(static_cast<int>(kGraphSeconds / (calls * probe + flush)), kFewestSamples, most);
  MYCC_ASSIGN_OR_RETURN(const CudaGraph graph, device_->Capture([&] {
    for (int i = 0; i < samples; ++i) MYCC_RETURN_IF_ERROR(EnqueueSample(call, cold, calls, i));
    return absl::OkStatus();
  }));
  const auto batch = [&]() -> absl::StatusOr<std::vector<double>> {
    MYCC_RETURN_IF_ERROR(device_->Launch(graph));
    MYCC_RETURN_IF_ERROR(device_->Wait());
    std::vector<double> seconds;
    for (int i = 0; i < samples; ++i) {
      MYCC_ASSIGN_OR_RETURN(const double sample, ends_[i].SecondsSince(starts_[i]));
      seconds.push_back(sample / calls);
    }
    return seconds;
  };
  return TimeBatches(plan, probe_seconds, batch, Now);
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
