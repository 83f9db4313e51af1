// Connects the workers with the queue: it registers workers, and handles their leases, reports and
// heartbeats, and their silence.
//
//   Lease -> leasing.h      Report -> reports.h      leases that end otherwise -> losses.h
//   LeaseBuilds, ReportBuilds, FetchArtifact -> build_farm.h
//
// Each decision is in the log before it is answered: a grant before the worker learns it, a result before it
// is acknowledged. A worker's message renews the leases that it lists, and no others: those return after one
// lease time. Thread rule: thread-compatible. No call blocks: a reply comes now or in a later turn.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/event.h"
#include "db/job_store.h"
#include "db/log_readers.h"
#include "db/log_writer.h"
#include "db/tuning_log.h"
#include "proto/tuning.pb.h"
#include "proto/worker.pb.h"
#include "server/baseline_table.h"
#include "server/build_farm.h"
#include "server/constants_table.h"
#include "server/device_history.h"
#include "server/job_board.h"
#include "server/lease_queue.h"
#include "server/lease_tickets.h"
#include "server/leasing.h"
#include "server/losses.h"
#include "server/reply.h"
#include "server/reports.h"
#include "server/time_source.h"
#include "server/worker_table.h"

namespace mycc {

struct DispatcherOptions {
  double lease_seconds = 20;
  LossOptions losses;
  LeasingOptions leasing;
  int64_t most_artifact_bytes = int64_t{4} << 30;  // of what build-only workers have built
  // Whether earlier workers find this server again, with their leases.
  bool workers_return = true;
  EventLog log;  // may be null
};

class Dispatcher {
 public:
  Dispatcher(DispatcherOptions options, TuningLog* log, LeaseQueue* queue, JobBoard* board,
             const TimeSource* time, const WriteExecutor& write, const ReadExecutor& read);
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // Reads its key and the devices' baselines and constants from the log. REQUIRES: called first.
  absl::Status Start();

  // In all of these, NotFound: the session is unknown.
  void Register(const v1::RegisterRequest& request, const Reply<v1::RegisterResponse>& reply);
  // Waits as the request says until there are trials for the device, or something to tell the worker.
  void Lease(const v1::LeaseRequest& request, IsAlive alive, Reply<v1::LeaseResponse> reply);
  void Report(const v1::ReportRequest& request, Reply<v1::ReportResponse> reply);
  void Heartbeat(const v1::HeartbeatRequest& request, const Reply<v1::HeartbeatResponse>& reply);
  void Leave(const v1::LeaveRequest& request, const Reply<v1::LeaveResponse>& reply);
  // Waits as the request says until there are orders, or something to tell the worker.
  void LeaseBuilds(const v1::LeaseBuildsRequest& request, IsAlive alive,
                   Reply<v1::LeaseBuildsResponse> reply);
  void ReportBuilds(const v1::ReportBuildsRequest& request, Reply<v1::ReportBuildsResponse> reply);
  void FetchArtifact(const v1::FetchArtifactRequest& request, Reply<v1::FetchArtifactResponse> reply);

  // Takes back all leases of a job. Their holders are told with their next answers.
  void Revoke(const std::string& job);
  // The job's earlier leases were adopted: workers that have returned already get those that they claimed,
  // and the others go back to the queue.
  void OnAdopted(const std::string& job);

  std::vector<v1::DeviceStatus> Devices() const;
  bool AnyFits(const Target& code, v1::TimingProtocol protocol) const {
    return workers_.AnyFits(code, protocol);
  }
  // How many trials the farm can work at, one for each: the devices for the target, and the builds for them.
  int64_t Width(const Target& code) const { return workers_.CountFitting(code) + workers_.CountBuilds(code); }
  std::string StandstillOf(const Target& code, v1::TimingProtocol protocol) const {
    return workers_.StandstillOf(code, protocol);
  }
  // How devices that gave readings or trials changed.
  const DeviceHistory& history() const { return history_; }
  const ServiceCounters& counters() const { return reports_.counters(); }
  // The worker of a lease's holder.
  std::string WorkerOf(const std::string& holder) const;
  // Why a result of the job cannot be stored; empty: all could be.
  std::string TroubleOf(const std::string& job) const { return reports_.TroubleOf(job); }
  // Ends expired leases, forgets silent workers, and repeats failed writes.
  void Tick();
  // Gives waiting trials to waiting Lease calls, and orders to waiting LeaseBuilds calls.
  void Serve();
  // Answers the calls that wait for trials or orders.
  void RefuseWaiting(const absl::Status& status);

 private:
  using Leases = google::protobuf::RepeatedPtrField<v1::LeaseId>;

  // Handles the lease list of a message: the worker's own leases are renewed, others are revoked.
  absl::StatusOr<WorkerTable::Session*> Renew(const std::string& session, const Leases& held);
  absl::StatusOr<v1::RegisterResponse> RegisterNow(const v1::RegisterRequest& request);
  void RenewBuilds(WorkerTable::Session* session, const Leases& held);
  // Gives the session the leases that it shows tickets for; the others are added to `lost`.
  void Claim(WorkerTable::Session* session, const Leases& held,
             const std::optional<WorkerTable::Session>& replaced, Leases* lost);
  // Whether the lease belongs to a job that is being taken up; its validity is known only after that.
  bool IsClaim(const v1::LeaseId& lease) const;
  // Leases of the worker's name that the worker no longer lists ended with its earlier process.
  void LoseAllOf(const WorkerTable::Session& session, const std::optional<WorkerTable::Session>& replaced);
  // Why a listed lease is not renewed: its device stands still and others can measure the trial; empty: it is
  // renewed.
  std::string StandstillOf(const WorkerTable::Session& holder, const Grant& grant) const;
  void Tell(const Event& event) const {
    if (options_.log) options_.log(event);
  }
  // Keeps what a heartbeat tells of the devices.
  void TakeReadings(const v1::HeartbeatRequest& request, WorkerTable::Session* session);
  // A lease ran out.
  void EndOverdue(const Grant& grant);
  // The session was forgotten.
  void OnGone(const WorkerTable::Session& session);

  const DispatcherOptions options_;
  TuningLog* const log_;
  JobStore store_;
  LeaseQueue* const queue_;
  JobBoard* const board_;
  const TimeSource* const time_;
  BaselineTable baselines_;
  ConstantsTable constants_;
  // The sessions that show tickets for leases of jobs that are being taken up, by job, trial and attempt.
  std::map<std::string, std::map<std::pair<std::string, uint32_t>, std::string>> claims_;
  DeviceHistory history_;
  LeaseTickets tickets_;  // with the log's key, once it is read
  WorkerTable workers_;
  Losses losses_;
  BuildFarm builds_;
  Leasing leasing_;
  Reports reports_;
};

}  // namespace mycc
