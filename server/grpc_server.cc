#include "server/grpc_server.h"

#include <chrono>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/status.h"
#include "google/protobuf/stubs/logging.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/server_context.h"
#include "grpcpp/server_posix.h"
#include "proto/grpc_log.h"
#include "proto/server_facts.h"
#include "proto/tuning.grpc.pb.h"
#include "proto/worker.grpc.pb.h"
#include "server/call_gate.h"
#include "server/peer_listener.h"
#include "server/reflection_guard.h"
#include "server/socket_lock.h"
#include "server/tls_credentials.h"

namespace mycc {
namespace {

// Calls under way on one connection. A worker or a client has one connection and a few calls.
constexpr int kMostCallsOfOne = 100;
// For TLS: a connection that says nothing is not kept.
constexpr int kHandshakeMilliseconds = 10000;
// The calls that wait when their connection is to be made anew: the longest wait, and its answer.
constexpr int kLastCallsMilliseconds = 90000;
constexpr int kServerQuietMilliseconds = 60000;  // of a line without calls
constexpr auto kShutdownGrace = std::chrono::milliseconds(200);

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

using CallPtr = std::shared_ptr<OpenCall>;

// For `mycc-tune doctor`.
void TellFacts(grpc::CallbackServerContext* context) {
  context->AddInitialMetadata(kVersionMetadata, ProgramVersion());
  context->AddInitialMetadata(kTimeMetadata, absl::StrCat(SystemUnixMicros()));
}

IsAlive AliveWhile(const CallPtr& call) {
  return [call] { return call->IsAlive(); };
}

class WorkerServiceImpl final : public v1::WorkerService::CallbackService {
 public:
  WorkerServiceImpl(ServerLoop* loop, CallGate* gate) : loop_(loop), gate_(gate) {}

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context, const v1::RegisterRequest* request,
                                     v1::RegisterResponse* response) override {
    return gate_->Answer<v1::RegisterResponse>(
        "Register", context, *request, response, [&](const CallPtr& call, Reply<v1::RegisterResponse> reply) {
          const absl::Status room = gate_->ledger().CheckRoom(call->caller().name, Now());
          if (!room.ok()) return reply(room);
          loop_->Register(*request, [this, call, worker = request->worker(),
                                     reply](absl::StatusOr<v1::RegisterResponse> answer) {
            if (answer.ok())
              gate_->ledger().AddSession(answer->session(), worker, call->caller().name, Now());
            reply(std::move(answer));
          });
        });
  }
  grpc::ServerUnaryReactor* Lease(grpc::CallbackServerContext* context, const v1::LeaseRequest* request,
                                  v1::LeaseResponse* response) override {
    return InSession("Lease", context, request, response, [&](const CallPtr& call, auto reply) {
      loop_->Lease(*request, AliveWhile(call), reply);
    });
  }
  grpc::ServerUnaryReactor* Report(grpc::CallbackServerContext* context, const v1::ReportRequest* request,
                                   v1::ReportResponse* response) override {
    return InSession("Report", context, request, response,
                     [&](const CallPtr&, auto reply) { loop_->Report(*request, reply); });
  }
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const v1::HeartbeatRequest* request,
                                      v1::HeartbeatResponse* response) override {
    return InSession("Heartbeat", context, request, response,
                     [&](const CallPtr&, auto reply) { loop_->Heartbeat(*request, reply); });
  }
  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context, const v1::LeaveRequest* request,
                                  v1::LeaveResponse* response) override {
    return InSession(
        "Leave", context, request, response, [&](const CallPtr&, Reply<v1::LeaveResponse> reply) {
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
    return InSession("LeaseBuilds", context, request, response, [&](const CallPtr& call, auto reply) {
      loop_->LeaseBuilds(*request, AliveWhile(call), reply);
    });
  }
  grpc::ServerUnaryReactor* ReportBuilds(grpc::CallbackServerContext* context,
                                         const v1::ReportBuildsRequest* request,
                                         v1::ReportBuildsResponse* response) override {
    return InSession("ReportBuilds", context, request, response,
                     [&](const CallPtr&, auto reply) { loop_->ReportBuilds(*request, reply); });
  }
  grpc::ServerUnaryReactor* FetchArtifact(grpc::CallbackServerContext* context,
                                          const v1::FetchArtifactRequest* request,
                                          v1::FetchArtifactResponse* response) override {
    return InSession("FetchArtifact", context, request, response,
                     [&](const CallPtr&, auto reply) { loop_->FetchArtifact(*request, reply); });
  }

 private:
  // A call of a worker that has registered: the session is its caller's own.
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* InSession(
      const char* name, grpc::CallbackServerContext* context, const Request* request, Response* response,
      const std::type_identity_t<std::function<void(const CallPtr&, Reply<Response>)>>& start) {
    return gate_->Answer<Response>(
        name, context, *request, response, [&](const CallPtr& call, Reply<Response> reply) {
          const absl::Status own =
              gate_->ledger().CheckSession(request->session(), call->caller().name, Now());
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

class TuningServiceImpl final : public v1::TuningService::CallbackService {
 public:
  TuningServiceImpl(ServerLoop* loop, CallGate* gate) : loop_(loop), gate_(gate) {}

  grpc::ServerUnaryReactor* SubmitJob(grpc::CallbackServerContext* context,
                                      const v1::SubmitJobRequest* request,
                                      v1::SubmitJobResponse* response) override {
    return gate_->Answer<v1::SubmitJobResponse>("SubmitJob", context, *request, response,
                                                [&](const CallPtr& call, auto reply) {
                                                  v1::SubmitJobRequest owned = *request;
                                                  if (!call->caller().name.empty())
                                                    owned.set_owner(call->caller().name);
                                                  loop_->SubmitJob(std::move(owned), reply);
                                                });
  }
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context, const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override {
    return gate_->Answer<v1::ListJobsResponse>(
        "ListJobs", context, *request, response,
        [&](const CallPtr&, auto reply) { loop_->ListJobs(*request, reply); });
  }
  grpc::ServerUnaryReactor* WatchJob(grpc::CallbackServerContext* context, const v1::WatchJobRequest* request,
                                     v1::WatchJobResponse* response) override {
    return gate_->Answer<v1::WatchJobResponse>(
        "WatchJob", context, *request, response, [&](const CallPtr& call, Reply<v1::WatchJobResponse> reply) {
          // One who waits for a job keeps it running.
          const absl::Status may_wait = request->client().empty()
                                            ? absl::OkStatus()
                                            : CheckRole(call->caller(), "waiting for a job", Role::kSubmit);
          if (!may_wait.ok()) return reply(may_wait);
          loop_->WatchJob(*request, AliveWhile(call), reply);
        });
  }
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const v1::CancelJobRequest* request,
                                      v1::CancelJobResponse* response) override {
    return gate_->Answer<v1::CancelJobResponse>(
        "CancelJob", context, *request, response,
        [&](const CallPtr& call, Reply<v1::CancelJobResponse> reply) {
          v1::CancelJobRequest named = *request;
          if (!call->caller().name.empty()) named.set_by(call->caller().name);
          ForOwner<v1::CancelJobResponse>(call, request->job(), "cancelling", reply,
                                          [this, named, reply] { loop_->CancelJob(named, reply); });
        });
  }
  grpc::ServerUnaryReactor* LeaveJob(grpc::CallbackServerContext* context, const v1::LeaveJobRequest* request,
                                     v1::LeaveJobResponse* response) override {
    return gate_->Answer<v1::LeaveJobResponse>(
        "LeaveJob", context, *request, response,
        [&](const CallPtr&, auto reply) { loop_->LeaveJob(*request, reply); });
  }
  grpc::ServerUnaryReactor* UpdateJob(grpc::CallbackServerContext* context,
                                      const v1::UpdateJobRequest* request,
                                      v1::UpdateJobResponse* response) override {
    return gate_->Answer<v1::UpdateJobResponse>(
        "UpdateJob", context, *request, response,
        [&](const CallPtr& call, Reply<v1::UpdateJobResponse> reply) {
          ForOwner<v1::UpdateJobResponse>(
              call, request->job(), "changing", reply,
              [this, request = *request, reply] { loop_->UpdateJob(request, reply); });
        });
  }
  grpc::ServerUnaryReactor* ListOwners(grpc::CallbackServerContext* context,
                                       const v1::ListOwnersRequest* request,
                                       v1::ListOwnersResponse* response) override {
    return gate_->Answer<v1::ListOwnersResponse>(
        "ListOwners", context, *request, response,
        [&](const CallPtr&, auto reply) { loop_->ListOwners(*request, reply); });
  }
  grpc::ServerUnaryReactor* ListDevices(grpc::CallbackServerContext* context,
                                        const v1::ListDevicesRequest* request,
                                        v1::ListDevicesResponse* response) override {
    TellFacts(context);
    return gate_->Answer<v1::ListDevicesResponse>(
        "ListDevices", context, *request, response,
        [&](const CallPtr&, Reply<v1::ListDevicesResponse> reply) {
          loop_->ListDevices(*request, [this, reply](absl::StatusOr<v1::ListDevicesResponse> answer) {
            if (!answer.ok()) return reply(std::move(answer));
            for (v1::DeviceStatus& device : *answer->mutable_devices())
              device.set_owner(gate_->ledger().OwnerOf(device.worker()));
            reply(std::move(answer));
          });
        });
  }
  grpc::ServerUnaryReactor* Best(grpc::CallbackServerContext* context, const v1::BestRequest* request,
                                 v1::BestResponse* response) override {
    return gate_->Answer<v1::BestResponse>("Best", context, *request, response,
                                           [&](const CallPtr&, auto reply) { loop_->Best(*request, reply); });
  }

 private:
  // An admin changes any job, a submitter their own.
  template <typename Response>
  void ForOwner(const CallPtr& call, const std::string& job, const std::string& doing,
                const Reply<Response>& reply, const std::function<void()>& change) {
    if (call->caller().roles.Allow(Role::kAdmin)) return change();
    v1::WatchJobRequest look;
    look.set_job(job);
    loop_->WatchJob(
        std::move(look), AliveWhile(call),
        [call, job, doing, reply, change](absl::StatusOr<v1::WatchJobResponse> found) {
          if (!found.ok()) return reply(found.status());
          const std::string& owner = found->progress().owner();
          if (!owner.empty() && owner == call->caller().name) return change();
          const std::string whose = owner.empty() ? "nobody's" : owner + "'s";
          reply(CheckRole(call->caller(), absl::StrCat(doing, " job ", job, ", which is ", whose, ","),
                          Role::kAdmin));
        });
  }

  ServerLoop* const loop_;
  CallGate* const gate_;
};

AccessFileNames FilesOf(const ListenOptions& options) {
  return {options.access_file, options.token_file, options.tls_cert_file, options.tls_key_file,
          options.tls_client_ca_file};
}

bool HasTls(const ListenOptions& options) { return !options.tls_cert_file.empty(); }
bool AsksCallers(const ListenOptions& options) {
  return !options.token_file.empty() || !options.access_file.empty();
}
// The kernel is asked whose each connection is: nothing else says so.
bool AsksKernel(const ListenOptions& options) {
  return IsLocal(options.address) && !HasTls(options) && options.token_file.empty();
}

absl::Status CheckProtection(const ListenOptions& options) {
  if (options.tls_require_client_certificate && options.tls_client_ca_file.empty())
    return absl::InvalidArgumentError("--tls-require-client-cert needs --tls-client-ca, which signs them");
  if (IsLocal(options.address)) {
    if (!HasTls(options) || AsksCallers(options)) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        options.address, " with TLS would serve every user of this host; expected --access or --token-file"));
  }
  const bool is_protected = HasTls(options) && AsksCallers(options);
  if (is_protected || options.insecure_allow_remote) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      options.address,
      " can be reached from other hosts, which could run code on the workers; expected --tls-cert, "
      "--tls-key, and --access or --token-file, or --insecure-allow-remote"));
}

// "Address already in use": the system's words in an error of gRPC, or all of it where there are none.
std::string WhyNot() {
  const std::string error = FirstGrpcError();
  constexpr char kSystemWords[] = "os_error:\"";
  const size_t at = error.find(kSystemWords);
  if (at == std::string::npos) return error.empty() ? "gRPC does not say why" : error;
  const size_t begin = at + sizeof(kSystemWords) - 1;
  return error.substr(begin, error.find('"', begin) - begin);
}

absl::Status CannotListen(const std::string& address, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", why));
}

// The path of "unix:PATH" or "unix:///PATH"; empty for another address.
std::string SocketPath(const std::string& address) {
  absl::string_view path = address;
  if (!absl::ConsumePrefix(&path, "unix:")) return "";
  if (absl::StartsWith(path, "///")) path.remove_prefix(2);
  return std::string(path);
}

}  // namespace

struct GrpcServer::Impl {
  Impl(ServerLoop* loop, const ListenOptions& options, std::unique_ptr<AccessFiles> opened,
       std::unique_ptr<PeerListener> own_listener)
      : files(std::move(opened)),
        listener(std::move(own_listener)),
        gate({.open = !AsksCallers(options) && listener == nullptr, .bounds = options.bounds}, files.get(),
             listener.get()),
        workers(loop, &gate),
        tuning(loop, &gate) {}

  const std::unique_ptr<AccessFiles> files;
  const std::unique_ptr<PeerListener> listener;  // null: gRPC listens itself
  CallGate gate;
  WorkerServiceImpl workers;
  TuningServiceImpl tuning;
  std::string address;
  std::optional<SocketLock> socket_lock;  // until the socket is removed
  std::shared_ptr<grpc::ServerCredentials> credentials;
  std::unique_ptr<grpc::Server> server;

  void OnAccessChanged() {
    if (listener != nullptr) listener->OpenToOthers(files->NamesUsers());
    gate.CheckAgain();
  }
};

GrpcServer::GrpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::Status GrpcServer::Check(const ListenOptions& options) {
  MYCC_RETURN_IF_ERROR(CheckAddress(options.address));
  MYCC_RETURN_IF_ERROR(CheckProtection(options));
  return AccessFiles::Check(FilesOf(options));
}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const ListenOptions& options,
                                                              ServerLoop* loop) {
  MYCC_RETURN_IF_ERROR(Check(options));
  MYCC_ASSIGN_OR_RETURN(std::unique_ptr<AccessFiles> files, AccessFiles::Open(FilesOf(options), options.log));
  KeepGrpcErrors();
  // A caller could fill the server's output with texts that are none: each would have a line.
  google::protobuf::SetLogHandler(nullptr);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  const std::string socket_path = SocketPath(options.address);
  std::optional<SocketLock> socket_lock;
  if (!socket_path.empty()) {
    absl::StatusOr<SocketLock> lock = SocketLock::Take(socket_path);
    if (!lock.ok()) return CannotListen(options.address, lock.status().message());
    socket_lock.emplace(*std::move(lock));
  }
  std::unique_ptr<PeerListener> listener;
  if (AsksKernel(options)) {
    absl::StatusOr<std::unique_ptr<PeerListener>> listening = PeerListener::Listen(options.address);
    if (!listening.ok()) return CannotListen(options.address, listening.status().message());
    listener = *std::move(listening);
  }
  auto impl = std::make_unique<Impl>(loop, options, std::move(files), std::move(listener));
  if (socket_lock) impl->socket_lock.emplace(*std::move(socket_lock));
  MYCC_RETURN_IF_ERROR(Listen(options, impl.get()));
  std::unique_ptr<GrpcServer> server(new GrpcServer(std::move(impl)));
  server->impl_->files->Watch([impl = server->impl_.get()] { impl->OnAccessChanged(); });
  return server;
}

absl::Status GrpcServer::Listen(const ListenOptions& options, Impl* impl) {
  int port = 0;
  grpc::ServerBuilder builder;
  if (impl->listener == nullptr) {
    impl->credentials = HasTls(options)
                            ? WatchedTlsCredentials(impl->files.get(), options.tls_require_client_certificate)
                            : grpc::InsecureServerCredentials();
    builder.AddListeningPort(options.address, impl->credentials, &port);
  }
  // A second server on one port is an error, not a rival.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMilliseconds);
  if (!options.tls_client_ca_file.empty()) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS,
                               static_cast<int>(1e3 * options.connection_seconds));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, kLastCallsMilliseconds);
  }
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  // A message is in memory before its caller is known.
  builder.SetResourceQuota(grpc::ResourceQuota("server").Resize(options.message_bytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostCallsOfOne);
  // Clients try quiet lines, and so does the server, which gives those up whose other end has gone.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kQuietMilliseconds / 2);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kServerQuietMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kQuietMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.RegisterService(&impl->workers);
  builder.RegisterService(&impl->tuning);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> guards;
  guards.push_back(ReflectionGuard(&impl->gate));
  builder.experimental().SetInterceptorCreators(std::move(guards));
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr) return CannotListen(options.address, WhyNot());
  if (impl->listener != nullptr) {
    impl->address = impl->listener->address();
    impl->OnAccessChanged();
    impl->listener->Start([server = impl->server.get()](int descriptor) {
      grpc::AddInsecureChannelFromFd(server, descriptor);
    });
    return absl::OkStatus();
  }
  if (port == 0) return CannotListen(options.address, WhyNot());
  impl->address = !SocketPath(options.address).empty()
                      ? options.address
                      : absl::StrCat(options.address.substr(0, options.address.rfind(':')), ":", port);
  return absl::OkStatus();
}

GrpcServer::~GrpcServer() {
  impl_->files->StopWatching();
  if (impl_->listener != nullptr) impl_->listener->Stop();
  impl_->server->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
}

const std::string& GrpcServer::address() const { return impl_->address; }
const AccessFiles& GrpcServer::access() const { return *impl_->files; }
void GrpcServer::RefreshAccess() {
  if (impl_->files->Refresh()) impl_->OnAccessChanged();
}

}  // namespace mycc
