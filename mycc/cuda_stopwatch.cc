#include "mycc/cuda_stopwatch.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/status.h"
#include "codegen/runtime/cuda_device.h"

namespace mycc {
namespace {

constexpr double kEventSampleSeconds =
    50e-6;                              // of a warm sample, at least: far above the resolution of events
constexpr double kGraphSeconds = 5e-3;  // of a graph, about
constexpr int kMaxSamples = 32;         // of a graph
constexpr int kMaxCalls = 256;          // of a graph
constexpr int kFlushOfL2 = 2;           // written over before a cold call, in sizes of L2

class GraphLaunches : public Stopwatch {
 public:
  GraphLaunches(Library* library, Arguments* arguments, bool cold, CudaStream stream)
      : library_(library), arguments_(arguments), cold_(cold), stream_(std::move(stream)) {}

  // Captures the graph of a sample, and lets clocks and caches settle.
  absl::Status Prepare() {
    MYCC_RETURN_IF_ERROR(Allocate());
    std::vector<double> probes;
    MYCC_ASSIGN_OR_RETURN(const CudaGraph probe, Capture(2, 1));
    MYCC_RETURN_IF_ERROR(Run(probe, 2, 1, &probes));
    const double once = std::max(probes.back(), 1e-6);
    calls_ =
        cold_ ? 1 : std::clamp(static_cast<int>(std::ceil(kEventSampleSeconds / once)), 1, kMaxCalls / 4);
    const int most = std::min(kMaxSamples, kMaxCalls / calls_);
    samples_ = std::clamp(static_cast<int>(kGraphSeconds / (once * calls_)), 1, most);
    MYCC_ASSIGN_OR_RETURN(CudaGraph graph, Capture(samples_, calls_));
    graph_.emplace(std::move(graph));
    return Sample(&probes);
  }

  absl::Status Sample(std::vector<double>* seconds) override {
    return Run(*graph_, samples_, calls_, seconds);
  }

 private:
  absl::Status Allocate() {
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

  Library* const library_;
  Arguments* const arguments_;
  const bool cold_;
  CudaStream stream_;
  std::optional<CudaBuffer> flushed_;
  std::vector<CudaEvent> begins_, ends_;
  std::optional<CudaGraph> graph_;
  int samples_ = 1, calls_ = 1;  // of the graph, of a sample
};

}  // namespace

absl::StatusOr<std::unique_ptr<Stopwatch>> CudaStopwatch(Library* library, Arguments* arguments, bool cold) {
  MYCC_ASSIGN_OR_RETURN(CudaStream stream, arguments->session()->CreateStream());
  auto stopwatch = std::make_unique<GraphLaunches>(library, arguments, cold, std::move(stream));
  MYCC_RETURN_IF_ERROR(stopwatch->Prepare());
  return stopwatch;
}

}  // namespace mycc
