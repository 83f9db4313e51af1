// The worker: it registers, leases trials, has them measured, and reports each result until the server has
// answered.
//
//   lane threads of a device:          its constants, if the server asks; Lease -> measure -> results that
//   wait connection thread (Run's caller):  Register, Report what waits, Heartbeat
//
// Each message lists the leases that the worker holds, and only this renews them. A result waits until its
// own report is answered, also across a restart of the server: the worker then registers again with its
// leases. Once registered, no error of a call ends a worker or costs a result. Thread rule: Run is called
// once, the rest by any thread.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/event.h"
#include "base/mutex.h"
#include "process/framing.h"
#include "proto/worker.pb.h"
#include "worker/holdings.h"
#include "worker/measure.h"
#include "worker/owed_constants.h"
#include "worker/server_link.h"

namespace mycc {

struct WorkerDevice {
  v1::DeviceOffer offer;
  MeasureFunction measure;       // called by the device's lanes alone
  int batch = 1;                 // trials to lease at once
  int lanes = 1;                 // that lease and measure beside each other
  bool reports_at_once = false;  // else at the end of a batch, so as not to disturb a timing
  // Why the device stands still although it has work; empty: it does not. Null: it never does.
  std::function<std::string()> trouble;
  // The device's state, for each heartbeat. Null: it says nothing.
  std::function<v1::DeviceReading()> reading = nullptr;
  // Measures the device's constants, which the server may ask for; gives up when it is told so. Null: it
  // cannot be done, or is not wanted.
  std::function<absl::StatusOr<v1::DeviceConstants>(const std::function<bool()>& gives_up)>
      measure_constants = nullptr;
};

struct WorkerOptions {
  std::string name;
  std::string instance;  // names this process: random
  std::string replaces;  // the instance that had the name before, which has ended; empty: not known
  v1::Toolchain toolchain;
  v1::WorkerRole role = v1::WORKER_ROLE_BOTH;
  double poll_seconds = 20;          // for one Lease call to wait
  double first_retry_seconds = 0.1;  // doubles up to the last
  double last_retry_seconds = 0.5;   // soon after a restart the server has the results
  double leave_seconds = 10;         // for the last reports, when the server does not answer
  EventLog log;                      // may be null
  std::function<Deadline()> now = std::chrono::steady_clock::now;  // the age of the server's word
};

class Worker {
 public:
  Worker(WorkerOptions options, ServerLink* link, std::vector<WorkerDevice> devices);

  // Works until Stop(). An error is the server's refusal of a worker that was never registered.
  absl::Status Run();
  // Waits until the server knows this worker and the constants that it asked for; false when it does not
  // within `seconds`.
  bool WaitUntilReady(double seconds);
  // Gets what a build-only worker has built, by its digest; any thread. Cancelled: the worker is stopping.
  absl::StatusOr<std::string> FetchArtifact(const std::string& digest);
  // Drains: measurements under way are finished and reported, the rest goes back.
  void Stop();

 private:
  // Reasons that were printed since all was well: each is printed once.
  using Told = std::set<std::string>;

  void RunLane(const WorkerDevice& device);
  // Notes the constants that the server asked for when the worker registered.
  void AskFor(const v1::RegisterResponse& response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Measures the device's constants where they are wanted, and no other lane does so.
  void MeasureConstants(const WorkerDevice& device);
  void MeasureBatch(const WorkerDevice& device, const v1::LeaseResponse& leased);
  void Finish(const WorkerDevice& device, const v1::Assignment& assignment,
              std::vector<v1::MeasureResult> results);
  // Waits for word of the server where its last is older than a lease: a process that was stopped does not
  // know which trials others have measured meanwhile.
  bool IsUnwanted(const v1::LeaseId& lease);
  // The session, as soon as there is one; empty when stopping.
  std::string WaitForSession();
  void ForgetSession(const std::string& session);
  void Apply(const v1::Instructions& instructions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sleeps, shorter when stopping; true while the worker goes on.
  bool Pause(double seconds);
  double LongerRetry(double seconds);

  absl::Status Register();
  absl::Status SendReports(const std::string& session);
  absl::Status SendHeartbeat(const std::string& session);
  // Sends one message to the server: it registers where there is no session.
  absl::Status Send(bool reports);
  // Sends a message if one is due.
  absl::Status KeepAlive();
  // The connection thread's work, until the worker stops or is refused.
  absl::Status KeepAliveUntilStopped();
  void Leave();
  // The troubles of the devices, when they are news.
  std::vector<v1::DeviceTrouble> Troubles();
  void Log(const std::string& line) const;
  void Tell(Event event) const;
  void LogOnce(const std::string& line, Told* told) const;

  const WorkerOptions options_;
  ServerLink* const link_;
  const std::vector<WorkerDevice> devices_;
  std::map<std::string, std::string>
      troubles_;              // of devices, as they were last told; the connection thread's
  Told refusals_;             // likewise
  Deadline next_beat_{};      // likewise: reports do not put it off
  bool beat_failed_ = false;  // likewise: the next one waits for a report, if there is one

  Mutex mutex_;
  CondVar changed_;
  std::string session_ ABSL_GUARDED_BY(mutex_);
  Deadline word_at_ ABSL_GUARDED_BY(mutex_){};       // the last message that ended began then
  bool needs_word_ ABSL_GUARDED_BY(mutex_) = false;  // a heartbeat is due before its time
  double lease_seconds_ ABSL_GUARDED_BY(mutex_) = 20;
  bool was_registered_ ABSL_GUARDED_BY(mutex_) = false;
  double heartbeat_seconds_ ABSL_GUARDED_BY(mutex_) = 5;
  Holdings holdings_ ABSL_GUARDED_BY(mutex_);
  std::string drain_ ABSL_GUARDED_BY(mutex_);
  bool flush_ ABSL_GUARDED_BY(mutex_) = false;
  OwedConstants constants_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mycc
