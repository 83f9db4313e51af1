// The interface of a worker's connection to its server. Thread rule: thread-safe; calls block.
#pragma once

#include "absl/status/statusor.h"
#include "proto/worker.pb.h"

namespace mycc {

class ServerLink {
 public:
  virtual ~ServerLink() = default;

  // Unavailable: try again. NotFound, but for Register: the server does not know the session (any more).
  virtual absl::StatusOr<v1::RegisterResponse> Register(const v1::RegisterRequest& request) = 0;
  // Waits as the request says.
  virtual absl::StatusOr<v1::LeaseResponse> Lease(const v1::LeaseRequest& request) = 0;
  virtual absl::StatusOr<v1::ReportResponse> Report(const v1::ReportRequest& request) = 0;
  virtual absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request) = 0;
  virtual absl::StatusOr<v1::LeaveResponse> Leave(const v1::LeaveRequest& request) = 0;
  // The calls of a build-only worker. Unimplemented: the server has no such workers.
  virtual absl::StatusOr<v1::LeaseBuildsResponse> LeaseBuilds(const v1::LeaseBuildsRequest&) {
    return absl::UnimplementedError("no builds for others");
  }
  virtual absl::StatusOr<v1::ReportBuildsResponse> ReportBuilds(const v1::ReportBuildsRequest&) {
    return absl::UnimplementedError("no builds for others");
  }
  // Gets what such a worker has built. FailedPrecondition: it is there no more.
  virtual absl::StatusOr<v1::FetchArtifactResponse> FetchArtifact(const v1::FetchArtifactRequest&) {
    return absl::UnimplementedError("no builds for others");
  }

  // Ends the Lease and LeaseBuilds calls that wait, now and from now on, with Cancelled.
  virtual void StopWaiting() = 0;
};

}  // namespace mycc
