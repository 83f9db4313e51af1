// Times a candidate on a GPU by replaying CUDA graphs. A graph holds several samples, each between two
// events, so that no time of the host is included. Cold samples overwrite the L2 before each. Thread rule:
// the device's thread.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/gpu_call.h"
#include "worker/gpu_context.h"
#include "worker/timer.h"
#include "worker/turns.h"

namespace mycc {

class GpuTimer {
 public:
  static constexpr int kMostInTurn = 10;

  static absl::StatusOr<std::unique_ptr<GpuTimer>> Create(GpuContext* device);

  // Seconds of one call, without a graph: a probe. DeadlineExceeded when it takes longer than
  // `limit_seconds`.
  absl::StatusOr<double> TimeOnce(GpuCall* call, double limit_seconds);
  // `probe_seconds`: the approximate time of a call.
  absl::StatusOr<v1::Timing> Time(GpuCall* call, const TimingPlan& plan, double probe_seconds);
  // Several candidates, of about `probe_seconds` each, in turn: a graph holds whole turns. At most
  // kMostInTurn.
  absl::StatusOr<std::vector<v1::Timing>> TimeInTurn(const std::vector<GpuCall*>& candidates,
                                                     const TimingPlan& plan, double probe_seconds);
  // Memory that is overwritten before each cold sample; its contents have no meaning.
  const CudaBuffer& flushed() const { return flushed_; }
  // The device's baseline kernel.
  absl::StatusOr<double> TimeBaseline();

 private:
  explicit GpuTimer(GpuContext* device) : device_(device) {}
  absl::Status EnqueueSample(GpuCall* call, bool cold, int calls, int sample);
  // The number of calls of about `call_seconds` each in a sample, and the sample's seconds.
  int CallsOf(bool cold, double call_seconds) const;
  double SampleSeconds(bool cold, int calls, double call_seconds) const;
  // The seconds that the samples of a graph took.
  absl::StatusOr<std::vector<double>> Replay(const CudaGraph& graph, int samples);

  GpuContext* const device_;
  CudaBuffer flushed_;  // twice the size of L2
  std::vector<CudaEvent> starts_, ends_;
};

}  // namespace mycc
