// A complete worker for this host's devices, for `mycc-tune worker` and inside `mycc-tune tune`. Thread rule:
// Run is called once, the rest by any thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "process/name_lock.h"
#include "proto/channel.h"
#include "worker/build_link.h"
#include "worker/cpu_measurer.h"
#include "worker/gpu_measurer.h"
#include "worker/kernel_builds.h"
#include "worker/server_link.h"
#include "worker/worker.h"

namespace mycc {

struct LocalWorkerOptions {
  std::string name;                            // empty: after the host and the process
  std::vector<std::string> devices = {"cpu"};  // or "cuda:0"
  v1::WorkerRole role = v1::WORKER_ROLE_BOTH;
  std::vector<std::string> build_targets;  // of the role `build`; empty: all GPUs that there are presets of
  int builders = 0;                        // processes that build at once; 0: one a CPU
  bool is_alone = false;                   // the server's only worker, so that its name is unique
  ConfinementMode confinement = ConfinementMode::kWherePossible;  // of candidates
  bool measures_constants = true;  // of its devices, where the server asks for them
  ServerAddress server;
  EventLog log;  // may be null
};

class LocalWorker {
 public:
  // With the role `build` there is no device. AlreadyExists when a live process on this host has the name;
  // InvalidArgument for what is no device's name; NotFound or FailedPrecondition for a device that this host
  // or this build does not have, saying what is missing; FailedPrecondition for a confinement that is
  // required and cannot be had.
  static absl::StatusOr<std::unique_ptr<LocalWorker>> Create(const LocalWorkerOptions& options);

  absl::Status Run() { return worker_->Run(); }
  void Stop() { worker_->Stop(); }
  bool WaitUntilReady(double seconds) { return worker_->WaitUntilReady(seconds); }

 private:
  LocalWorker() = default;
  // The builds for others, in a device's place.
  absl::StatusOr<WorkerDevice> AddBuilds(const LocalWorkerOptions& options);
  absl::StatusOr<WorkerDevice> AddCpu(const LocalWorkerOptions& options);
  absl::StatusOr<WorkerDevice> AddGpu(const std::string& name, const LocalWorkerOptions& options);

  Confinement confinement_;
  std::optional<NameLock> name_;
  std::unique_ptr<CpuMeasurer> cpu_;
  std::unique_ptr<BuildPool> gpu_builders_;  // shared by all GPUs
  std::vector<std::unique_ptr<GpuMeasurer>> gpus_;
  std::unique_ptr<ServerLink> link_;
  std::unique_ptr<BuildLink> build_link_;
  std::unique_ptr<KernelBuilds> builds_;
  std::unique_ptr<Worker> worker_;
};

// The CPUs that this process may use.
int UsableCpus();
// The device of this host that measures for the target: "cpu", or "cuda:0". FailedPrecondition "this machine
// cannot run TARGET: why", also where a driver or a GPU is missing.
absl::StatusOr<std::string> DeviceFor(const std::string& target);
// Measures candidates here and now, one by one, with no server. Thread rule: thread-compatible.
class LocalMeasurer {
 public:
  // On the device for the candidate's target. FailedPrecondition as above.
  absl::StatusOr<v1::MeasureResult> Measure(const v1::Assignment& assignment);

 private:
  std::unique_ptr<CpuMeasurer> cpu_;
  std::unique_ptr<BuildPool> gpu_builders_;
  std::unique_ptr<GpuMeasurer> gpu_;
};

}  // namespace mycc
