#include "worker/grpc_link.h"

#include <set>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "proto/worker.grpc.pb.h"

namespace mycc {
namespace {

constexpr double kCallSeconds = 20;
constexpr double kOpenSeconds = 1;  // for the connection, also to a server that is being started again

class GrpcLink final : public ServerLink {
 public:
  explicit GrpcLink(ServerChannel channel)
      : channel_(std::move(channel)), stub_(v1::WorkerService::NewStub(channel_.channel())) {}

  absl::StatusOr<v1::RegisterResponse> Register(const v1::RegisterRequest& request) override {
    return Call(&v1::WorkerService::Stub::Register, request);
  }
  absl::StatusOr<v1::ReportResponse> Report(const v1::ReportRequest& request) override {
    return Call(&v1::WorkerService::Stub::Report, request);
  }
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request) override {
    return Call(&v1::WorkerService::Stub::Heartbeat, request);
  }
  absl::StatusOr<v1::LeaveResponse> Leave(const v1::LeaveRequest& request) override {
    return Call(&v1::WorkerService::Stub::Leave, request);
  }

  absl::StatusOr<v1::ReportBuildsResponse> ReportBuilds(const v1::ReportBuildsRequest& request) override {
    return Call(&v1::WorkerService::Stub::ReportBuilds, request);
  }
  absl::StatusOr<v1::FetchArtifactResponse> FetchArtifact(const v1::FetchArtifactRequest& request) override {
    return Call(&v1::WorkerService::Stub::FetchArtifact, request);
  }
  absl::StatusOr<v1::LeaseResponse> Lease(const v1::LeaseRequest& request) override {
    return CallThatWaits(&v1::WorkerService::Stub::Lease, request);
  }
  absl::StatusOr<v1::LeaseBuildsResponse> LeaseBuilds(const v1::LeaseBuildsRequest& request) override {
    return CallThatWaits(&v1::WorkerService::Stub::LeaseBuilds, request);
  }

  void StopWaiting() override {
    const MutexLock lock(&mutex_);
    stopped_ = true;
    for (grpc::ClientContext* context : waiting_) context->TryCancel();
  }

 private:
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::WorkerService::Stub::*method)(grpc::ClientContext*,
                                                                                const Request&, Response*),
                                const Request& request) {
    channel_.WaitUntilOpen(kOpenSeconds);
    grpc::ClientContext context;
    channel_.Prepare(&context, kCallSeconds);
    Response response;
    MYCC_RETURN_IF_ERROR(channel_.StatusOf(((*stub_).*method)(&context, request, &response)));
    return response;
  }

  template <typename Request, typename Response>
  absl::StatusOr<Response> CallThatWaits(grpc::Status (v1::WorkerService::Stub::*method)(grpc::ClientContext*,
                                                                                         const Request&,
                                                                                         Response*),
                                         const Request& request) {
    grpc::ClientContext context;
    channel_.Prepare(&context, request.wait_seconds() + kCallSeconds);
    {
      const MutexLock lock(&mutex_);
      if (stopped_) return absl::CancelledError("the worker is stopping");
      waiting_.insert(&context);
    }
    Response response;
    const absl::Status status = channel_.StatusOf(((*stub_).*method)(&context, request, &response));
    const MutexLock lock(&mutex_);
    waiting_.erase(&context);
    if (!status.ok()) return status;
    return response;
  }

  const ServerChannel channel_;
  const std::unique_ptr<v1::WorkerService::Stub> stub_;
  Mutex mutex_;
  std::set<grpc::ClientContext*> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ServerLink>> ConnectToServer(const ServerAddress& address) {
  MYCC_ASSIGN_OR_RETURN(ServerChannel channel, ServerChannel::Open(address));
  return std::unique_ptr<ServerLink>(std::make_unique<GrpcLink>(std::move(channel)));
}

}  // namespace mycc
