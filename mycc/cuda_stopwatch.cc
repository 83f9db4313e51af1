#include "mycc/cuda_stopwatch.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "base/status.h"
#include "codegen/runtime/cuda_device.h"
#include "mycc/samples.h"

namespace mycc {
namespace {

constexpr double kEventSampleSeconds =
    50e-6;                              // of a warm sample, at least: far above the resolution of events
constexpr double kGraphSeconds = 5e-3;  // of a graph, about
constexpr int kMaxSamples = 32;         // of a graph
constexpr int kMaxCalls = 256;          // of a graph
constexpr int kFlushOfL2 = 2;           // written over before a cold call, in sizes of L2

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class CudaStopwatch {
 public:
  CudaStopwatch(Library* library, Arguments* arguments, bool cold, CudaStream stream)
      : library_(library), arguments_(arguments), cold_(cold), stream_(std::move(stream)) {}

  absl::Status Prepare() {
    CudaSession* session = arguments_->session();
    if (cold_) {
      MYCC_ASSIGN_OR_RETURN(const CudaDeviceInfo device, DescribeCudaDevice(session->ordinal()));
      MYCC_ASSIGN_OR_RETURN(CudaBuffer flushed, session->Allocate(kFlushOfL2 * device.l2_bytes));
      flushed_.emplace(std::move(flushed));
    }
    for (int i = 0; i < kMaxSamples; ++i) {
      MYCC_ASSIGN_OR_RETURN(CudaEvent begin, session->CreateEvent());
      MYCC_ASSIGN_OR_RETURN(CudaEvent end, session->CreateEvent());
      begins_.push_back(std::move(begin));
      ends_.push_back(std::move(end));
    }
    return absl::OkStatus();
  }

  // `samples` samples of `calls` calls each.
  absl::StatusOr<CudaGraph> Capture(int samples, int calls) {
    return stream_.Capture([&]() -> absl::Status {
      for (int i = 0; i < samples; ++i) {
        if (flushed_) MYCC_RETURN_IF_ERROR(stream_.Fill(*flushed_, 0));
        MYCC_RETURN_IF_ERROR(stream_.Record(begins_[i]));
        for (int j = 0; j < calls; ++j) {
          MYCC_RETURN_IF_ERROR(
              library_->Call(arguments_->function().name, arguments_->call_args(), stream_.handle()));
        }
        MYCC_RETURN_IF_ERROR(stream_.Record(ends_[i]));
      }
      return absl::OkStatus();
    });
  }

  // Launches such a graph, and adds its samples.
  absl::Status Run(const CudaGraph& graph, int samples, int calls, std::vector<double>* seconds) {
    MYCC_RETURN_IF_ERROR(stream_.Launch(graph));
    MYCC_RETURN_IF_ERROR(stream_.Synchronize());
    for (int i = 0; i < samples; ++i) {
      MYCC_ASSIGN_OR_RETURN(const double sample, ends_[i].SecondsSince(begins_[i]));
      seconds->push_back(sample / calls);
    }
    return absl::OkStatus();
  }

 private:
  Library* const library_;
  Arguments* const arguments_;
  const bool cold_;
  CudaStream stream_;
  std::optional<CudaBuffer> flushed_;
  std::vector<CudaEvent> begins_, ends_;
};

}  // namespace

absl::StatusOr<std::vector<double>> TimeOnCuda(Library* library, Arguments* arguments,
                                               const BenchOptions& options) {
  MYCC_ASSIGN_OR_RETURN(CudaStream stream, arguments->session()->CreateStream());
  CudaStopwatch stopwatch(library, arguments, options.cold, std::move(stream));
  MYCC_RETURN_IF_ERROR(stopwatch.Prepare());

  std::vector<double> probes;
  MYCC_ASSIGN_OR_RETURN(const CudaGraph probe, stopwatch.Capture(2, 1));
  MYCC_RETURN_IF_ERROR(stopwatch.Run(probe, 2, 1, &probes));
  const double once = std::max(probes.back(), 1e-6);
  const int calls =
      options.cold ? 1
                   : std::clamp(static_cast<int>(std::ceil(kEventSampleSeconds / once)), 1, kMaxCalls / 4);
  const int most = std::min(kMaxSamples, kMaxCalls / calls);
  const int samples = std::clamp(static_cast<int>(kGraphSeconds / (once * calls)), 1, most);

  MYCC_ASSIGN_OR_RETURN(const CudaGraph graph, stopwatch.Capture(samples, calls));
  std::vector<double> seconds;
  MYCC_RETURN_IF_ERROR(stopwatch.Run(graph, samples, calls, &seconds));  // clocks and caches settle
  seconds.clear();
  const SamplingPlan plan = {options.repeats, options.seconds};
  for (const double start = Now(); !IsEnough(seconds, plan, Now() - start);)
    MYCC_RETURN_IF_ERROR(stopwatch.Run(graph, samples, calls, &seconds));
  return seconds;
}

}  // namespace mycc
