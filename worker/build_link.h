// A build-only worker's view of the server. The worker's bookkeeping (worker.h) is the same for builds as for
// measurements: it leases, works, reports until it is answered, and registers again after a restart. This
// link turns its calls into those for builds: trials are orders, and results carry what was built. Thread
// rule: thread-safe; calls block.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "worker/server_link.h"

namespace mycc {

class BuildLink final : public ServerLink {
 public:
  // `server` must outlive the link. `targets`: texts of those that are built for.
  BuildLink(ServerLink* server, std::vector<std::string> targets, int builders)
      : server_(server), targets_(std::move(targets)), builders_(builders) {}

  // The bytes that the result of this lease will carry, until it is answered.
  void Attach(const v1::LeaseId& lease, std::string artifact);

  absl::StatusOr<v1::RegisterResponse> Register(const v1::RegisterRequest& request) override;
  absl::StatusOr<v1::LeaseResponse> Lease(const v1::LeaseRequest& request) override;
  absl::StatusOr<v1::ReportResponse> Report(const v1::ReportRequest& request) override;
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request) override {
    return server_->Heartbeat(request);
  }
  absl::StatusOr<v1::LeaveResponse> Leave(const v1::LeaveRequest& request) override {
    return server_->Leave(request);
  }
  absl::StatusOr<v1::LeaseBuildsResponse> LeaseBuilds(const v1::LeaseBuildsRequest& request) override {
    return server_->LeaseBuilds(request);
  }
  absl::StatusOr<v1::ReportBuildsResponse> ReportBuilds(const v1::ReportBuildsRequest& request) override {
    return server_->ReportBuilds(request);
  }
  absl::StatusOr<v1::FetchArtifactResponse> FetchArtifact(const v1::FetchArtifactRequest& request) override {
    return server_->FetchArtifact(request);
  }
  void StopWaiting() override { server_->StopWaiting(); }

 private:
  using Key = std::pair<std::string, uint32_t>;  // trial, attempt

  static Key KeyOf(const v1::LeaseId& lease) { return {lease.trial(), lease.attempt()}; }
  v1::BuildReport ReportOf(const v1::Report& report);
  // Forgets what was attached to reports that are over.
  void Detach(const v1::ReportBuildsResponse& response);

  ServerLink* const server_;
  const std::vector<std::string> targets_;
  const int builders_;
  Mutex mutex_;
  std::map<Key, std::string> artifacts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mycc
