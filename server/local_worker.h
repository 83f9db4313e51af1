// A worker for this host's devices, put together: what `mycc-tune worker` is, and what `mycc-tune tune` has
// inside. Thread rule: Run is called once, the rest by any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/channel.h"
#include "worker/cpu_measurer.h"
#include "worker/server_link.h"
#include "worker/worker.h"

namespace mycc {

struct LocalWorkerOptions {
  std::string name;  // empty: after the host and the process
  std::vector<std::string> devices = {"cpu"};
  int builders = 0;  // processes that build at once; 0: one a CPU
  ServerAddress server;
  std::function<void(const std::string&)> log;
};

class LocalWorker {
 public:
  // InvalidArgument for a device that this host or this build does not have.
  static absl::StatusOr<std::unique_ptr<LocalWorker>> Create(const LocalWorkerOptions& options);

  absl::Status Run() { return worker_->Run(); }
  void Stop() { worker_->Stop(); }
  bool WaitUntilRegistered(double seconds) { return worker_->WaitUntilRegistered(seconds); }

 private:
  LocalWorker() = default;

  std::unique_ptr<CpuMeasurer> measurer_;
  std::unique_ptr<ServerLink> link_;
  std::unique_ptr<Worker> worker_;
};

// The CPUs that this process may use.
int UsableCpus();
// FailedPrecondition "this machine cannot run TARGET: why".
absl::Status CheckRunsHere(const std::string& target);
// Measures one candidate here and now, with no server. FailedPrecondition when this machine cannot run its
// target.
absl::StatusOr<v1::MeasureResult> MeasureHere(CpuMeasurer* measurer, const v1::Assignment& assignment);

}  // namespace mycc
