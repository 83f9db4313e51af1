// The calls of workers. A session is its caller's own.
#include <chrono>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "proto/worker.grpc.pb.h"
#include "server/services.h"

namespace mycc {
namespace {

using WorkerCall = std::shared_ptr<OpenCall>;

// The server keeps what a worker registers for as long as it knows the worker.
constexpr size_t kMostRegisteredBytes = 64 << 10;

// The leases that a worker holds are not counted: they are looked up, and not kept.
absl::Status CheckRegistration(const v1::RegisterRequest& request) {
  size_t bytes = request.ByteSizeLong();
  for (const v1::LeaseId& lease : request.held()) {
    const size_t size = lease.ByteSizeLong();
    bytes -= 1 + google::protobuf::io::CodedOutputStream::VarintSize32(static_cast<uint32_t>(size)) + size;
  }
  if (bytes <= kMostRegisteredBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("worker ", request.worker(), " registers with ", bytes,
                                                 " bytes; expected at most ", kMostRegisteredBytes));
}

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class WorkerServiceImpl final : public v1::WorkerService::CallbackService {
 public:
  WorkerServiceImpl(ServerLoop* loop, CallGate* gate) : loop_(loop), gate_(gate) {}

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context, const v1::RegisterRequest* request,
                                     v1::RegisterResponse* response) override {
    return gate_->Answer<v1::RegisterResponse>(
        "Register", context, *request, response,
        [&](const WorkerCall& call, Reply<v1::RegisterResponse> reply) {
          absl::Status taken = CheckRegistration(*request);
          taken.Update(gate_->ledger().CheckRoom(call->caller().name, NowSeconds()));
          if (!taken.ok()) return reply(taken);
          loop_->Register(*request, [this, call, worker = request->worker(),
                                     reply](absl::StatusOr<v1::RegisterResponse> answer) {
            if (answer.ok())
              gate_->ledger().AddSession(answer->session(), worker, call->caller().name, NowSeconds());
            reply(std::move(answer));
          });
        });
  }
  grpc::ServerUnaryReactor* Lease(grpc::CallbackServerContext* context, const v1::LeaseRequest* request,
                                  v1::LeaseResponse* response) override {
    return InSession("Lease", context, request, response, [&](const WorkerCall& call, auto reply) {
      loop_->Lease(
          *request, [call] { return call->IsAlive(); }, reply);
    });
  }
  grpc::ServerUnaryReactor* Report(grpc::CallbackServerContext* context, const v1::ReportRequest* request,
                                   v1::ReportResponse* response) override {
    return InSession("Report", context, request, response,
                     [&](const WorkerCall&, auto reply) { loop_->Report(*request, reply); });
  }
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const v1::HeartbeatRequest* request,
                                      v1::HeartbeatResponse* response) override {
    return InSession("Heartbeat", context, request, response,
                     [&](const WorkerCall&, auto reply) { loop_->Heartbeat(*request, reply); });
  }
  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context, const v1::LeaveRequest* request,
                                  v1::LeaveResponse* response) override {
    return InSession(
        "Leave", context, request, response, [&](const WorkerCall&, Reply<v1::LeaveResponse> reply) {
          loop_->Leave(*request,
                       [this, session = request->session(), reply](absl::StatusOr<v1::LeaveResponse> answer) {
                         if (answer.ok()) gate_->ledger().RemoveSession(session);
                         reply(std::move(answer));
                       });
        });
  }
  grpc::ServerUnaryReactor* LeaseBuilds(grpc::CallbackServerContext* context,
                                        const v1::LeaseBuildsRequest* request,
                                        v1::LeaseBuildsResponse* response) override {
    return InSession("LeaseBuilds", context, request, response, [&](const WorkerCall& call, auto reply) {
      loop_->LeaseBuilds(
          *request, [call] { return call->IsAlive(); }, reply);
    });
  }
  grpc::ServerUnaryReactor* ReportBuilds(grpc::CallbackServerContext* context,
                                         const v1::ReportBuildsRequest* request,
                                         v1::ReportBuildsResponse* response) override {
    return InSession("ReportBuilds", context, request, response,
                     [&](const WorkerCall&, auto reply) { loop_->ReportBuilds(*request, reply); });
  }
  grpc::ServerUnaryReactor* FetchArtifact(grpc::CallbackServerContext* context,
                                          const v1::FetchArtifactRequest* request,
                                          v1::FetchArtifactResponse* response) override {
    return InSession("FetchArtifact", context, request, response,
                     [&](const WorkerCall&, auto reply) { loop_->FetchArtifact(*request, reply); });
  }

 private:
  // A call of a worker that has registered: the session is its caller's own.
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* InSession(
      const char* name, grpc::CallbackServerContext* context, const Request* request, Response* response,
      const std::type_identity_t<std::function<void(const WorkerCall&, Reply<Response>)>>& start) {
    return gate_->Answer<Response>(
        name, context, *request, response, [&](const WorkerCall& call, Reply<Response> reply) {
          const absl::Status own =
              gate_->ledger().CheckSession(request->session(), call->caller().name, NowSeconds());
          if (!own.ok()) return reply(own);
          start(call, [this, session = request->session(), reply](absl::StatusOr<Response> answer) {
            if (absl::IsNotFound(answer.status())) gate_->ledger().RemoveSession(session);
            reply(std::move(answer));
          });
        });
  }

  ServerLoop* const loop_;
  CallGate* const gate_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeWorkerService(ServerLoop* loop, CallGate* gate) {
  return std::make_unique<WorkerServiceImpl>(loop, gate);
}

}  // namespace mycc
