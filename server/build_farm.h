// The build-only workers beside those that measure: their queue, their calls, and what they have built.
//
//   LeaseBuilds -> build_leasing.h      ReportBuilds -> build_reports.h      what was built ->
//   artifact_store.h
//
// Thread rule: thread-compatible. No call blocks: a reply comes now or in a later turn.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "db/job_store.h"
#include "proto/worker.pb.h"
#include "server/artifact_store.h"
#include "server/build_leasing.h"
#include "server/build_queue.h"
#include "server/build_reports.h"

namespace mycc {

struct BuildFarmOptions {
  double lease_seconds = 20;
  std::string folder;  // of what was built
  int64_t most_bytes = int64_t{4} << 30;
  // Counts an impossible statement of a worker.
  std::function<void(WorkerTable::Session*, const std::string& what)> count_refusal;
};

class BuildFarm {
 public:
  // All of these outlive it.
  struct Around {
    JobStore* log;
    LeaseQueue* trials;
    JobBoard* board;
    WorkerTable* workers;
    const LeaseTickets* tickets;
    const TimeSource* time;
    WriteExecutor write;
    ReadExecutor read;
  };
  BuildFarm(const BuildFarmOptions& options, const Around& around);
  BuildFarm(const BuildFarm&) = delete;
  BuildFarm& operator=(const BuildFarm&) = delete;

  // Learns what an earlier server left.
  absl::Status Start() { return store_.Open(); }

  // REQUIRES, in all three: the session was heard now.
  void Lease(const v1::LeaseBuildsRequest& request, IsAlive alive, Reply<v1::LeaseBuildsResponse> reply) {
    leasing_.Lease(request, std::move(alive), std::move(reply));
  }
  void Report(const v1::ReportBuildsRequest& request, Reply<v1::ReportBuildsResponse> reply) {
    reports_.Report(request, std::move(reply));
  }
  void Fetch(const v1::FetchArtifactRequest& request, Reply<v1::FetchArtifactResponse> reply);

  BuildQueue& queue() { return queue_; }
  const BuildQueue& queue() const { return queue_; }

  // Adds what was built of the assignment's candidates.
  void AddArtifacts(v1::Assignment* assignment) const;
  // Whether a failure on a device is perhaps that of the build: nothing that its worker built has shown yet
  // that it runs.
  bool IsBuildDoubted(const QueuedWork& trial, v1::MeasureStatus status) const;
  // Forgets a build that is doubted.
  void Forget(const v1::Assignment& built) { store_.Forget(CandidateOf(built)); }
  // A trial has its result.
  void OnMeasured(const QueuedWork& trial, v1::MeasureStatus status);

  void Tick() { queue_.Tick(around_.time->Seconds()); }
  void Serve() { leasing_.Serve(); }
  void RefuseWaiting(const absl::Status& status) { leasing_.RefuseWaiting(status); }

 private:
  static std::string CandidateOf(const v1::Assignment& assignment) {
    return ArtifactStore::CandidateOf(assignment.workload(), assignment.target(), assignment.trace());
  }

  const Around around_;
  ArtifactStore store_;
  BuildQueue queue_;
  BuildLeasing leasing_;
  BuildReports reports_;
};

}  // namespace mycc
