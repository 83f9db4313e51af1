// The runner processes of one GPU: the active one, and a spare one with a warm context. The spare takes over
// when a candidate crashes or hangs the active one or breaks its context. Thread rule: one thread, which
// outlives it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "process/child.h"
#include "proto/measure.pb.h"
#include "worker/outcome.h"

namespace mycc {

class GpuRunners {
 public:
  // `command`: the runner's command. `start`: its first request.
  GpuRunners(ChildCommand command, v1::StartRequest start);
  // Ends the processes at the same time: the driver takes a tenth of a second to free a context.
  ~GpuRunners();

  // Gets the request answered within `seconds`. Otherwise `ending` says how the process ended: with the
  // candidate's failure, with DEVICE_LOST when no runner can use the device, or with WORKER_UNFIT when the
  // host lacks what a process needs.
  absl::StatusOr<v1::RunnerResponse> Call(const v1::RunnerRequest& request, double seconds, Ending* ending);
  // Starts the active one and waits for it, then starts the spare one: of two contexts that are made at once,
  // each takes twice as long.
  void WarmUp();
  // Before a call that times something, waits for the spare one that WarmUp started: its context would be
  // made meanwhile.
  void FinishWarmUp();

 private:
  // A process that was sent its start request, and may not have answered yet.
  struct Runner {
    std::unique_ptr<Child> child;
    bool ready = false;
  };

  Runner Begin() const;
  void BeginMissing();
  // OK once the current runner is ready.
  absl::Status EnsureReady();
  absl::Status AwaitReady(Runner* runner) const;
  // The current runner has ended; the spare one replaces it.
  void Replace();

  const ChildCommand command_;
  const v1::StartRequest start_;
  Runner current_, spare_;
  bool is_warming_up_ = false;
};

}  // namespace mycc
