// The worker: registers, leases trials, has them measured, and reports each result until the server has it
// for good.
//
//   lane threads of a device:   Lease -> measure -> outbox
//   line thread (Run's caller): Register, Report what is in the outbox, Heartbeat
//
// A result stays in the outbox until the server acknowledged it, also over a restart of the server: the
// worker then registers again, naming what it holds. Thread rule: Run is called once, the rest by any thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "proto/worker.pb.h"
#include "worker/framing.h"
#include "worker/measure.h"
#include "worker/server_link.h"

namespace mycc {

struct WorkerDevice {
  v1::DeviceOffer offer;
  MeasureFunction measure;       // called by the device's lanes alone
  int batch = 1;                 // trials to lease at once
  int lanes = 1;                 // that lease and measure beside each other
  bool reports_at_once = false;  // else at the end of a batch, so as not to disturb a timing
};

struct WorkerOptions {
  std::string name;
  v1::Toolchain toolchain;
  double poll_seconds = 20;          // for one Lease call to wait
  double first_retry_seconds = 0.1;  // doubles up to the last
  double last_retry_seconds = 5;
  double leave_seconds = 10;                    // for the last reports, when the server does not answer
  std::function<void(const std::string&)> log;  // a line for people; may be null
};

class Worker {
 public:
  Worker(WorkerOptions options, ServerLink* link, std::vector<WorkerDevice> devices);

  // Works until Stop(). An error is one that trying again does not mend: the server refuses this worker.
  absl::Status Run();
  // Waits until the server knows this worker; false when it does not within `seconds`.
  bool WaitUntilRegistered(double seconds);
  // Drains: what is being timed is finished and reported, the rest goes back.
  void Stop();

 private:
  using LeaseKey = std::pair<std::string, uint32_t>;  // trial, attempt

  void RunLane(const WorkerDevice& device);
  void MeasureBatch(const WorkerDevice& device, const v1::LeaseResponse& leased);
  bool IsUnwanted(const v1::LeaseId& lease);
  // The session, once there is one; empty when stopping.
  std::string WaitForSession();
  void ForgetSession(const std::string& session);
  void Obey(const v1::Instructions& instructions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sleeps, less when stopping; true while the worker goes on.
  bool Pause(double seconds);
  double LongerRetry(double seconds);

  absl::Status Register();
  absl::Status SendReports(const std::string& session);
  absl::Status SendHeartbeat(const std::string& session);
  absl::Status KeepLine();
  void Leave();
  void Log(const std::string& line) const;

  const WorkerOptions options_;
  ServerLink* const link_;
  const std::vector<WorkerDevice> devices_;

  Mutex mutex_;
  CondVar changed_;
  std::string session_ ABSL_GUARDED_BY(mutex_);
  double heartbeat_seconds_ ABSL_GUARDED_BY(mutex_) = 5;
  std::set<LeaseKey> held_ ABSL_GUARDED_BY(mutex_);  // leased and not yet acknowledged
  std::set<LeaseKey> revoked_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::Report> outbox_ ABSL_GUARDED_BY(mutex_);
  std::string drain_ ABSL_GUARDED_BY(mutex_);
  bool flush_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int lanes_ ABSL_GUARDED_BY(mutex_) = 0;  // running
};

}  // namespace mycc
