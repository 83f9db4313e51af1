#include "server/grpc_server.h"

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/server_context.h"
#include "proto/certificates.h"
#include "proto/grpc_log.h"
#include "proto/grpc_status.h"
#include "proto/tuning.grpc.pb.h"
#include "proto/worker.grpc.pb.h"
#include "server/socket_lock.h"

namespace mycc {
namespace {

// Calls under way on one connection. A worker or a client has one connection and a few calls.
constexpr int kMostCallsOfOne = 100;
constexpr int kServerQuietMilliseconds = 60000;  // of a line without calls
constexpr auto kShutdownGrace = std::chrono::milliseconds(200);

// Lets in callers that show the token; all callers where there is none.
class TokenCheck {
 public:
  explicit TokenCheck(const std::string& token) : expected_(token.empty() ? "" : TokenValue(token)) {}

  absl::Status Check(const grpc::CallbackServerContext& context) const {
    if (expected_.empty()) return absl::OkStatus();
    const auto shown = context.client_metadata().find(kTokenHeader);
    const bool same = shown != context.client_metadata().end() &&
                      Same(std::string(shown->second.data(), shown->second.size()));
    return same ? absl::OkStatus()
                : absl::UnauthenticatedError("the token is missing or wrong; expected --token-file");
  }

 private:
  // In a time that does not say how much of it is right.
  bool Same(const std::string& shown) const {
    if (shown.size() != expected_.size()) return false;
    unsigned difference = 0;
    for (size_t i = 0; i < shown.size(); ++i)
      difference |= static_cast<unsigned char>(shown[i] ^ expected_[i]);
    return difference == 0;
  }

  const std::string expected_;
};

// A call whose answer the loop gives later. `start` receives the reply.
template <typename Response>
grpc::ServerUnaryReactor* Answer(const TokenCheck& token_check, grpc::CallbackServerContext* context,
                                 Response* response, const std::function<void(Reply<Response>)>& start) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (const absl::Status status = token_check.Check(*context); !status.ok()) {
    reactor->Finish(ToGrpc(status));
    return reactor;
  }
  start([reactor, response](absl::StatusOr<Response> answer) {
    const absl::Status status = answer.status();
    if (status.ok()) *response = *std::move(answer);
    reactor->Finish(ToGrpc(status));
  });
  return reactor;
}

IsAlive AliveWhile(grpc::CallbackServerContext* context) {
  return [context] { return !context->IsCancelled(); };
}

class WorkerServiceImpl final : public v1::WorkerService::CallbackService {
 public:
  WorkerServiceImpl(ServerLoop* loop, const TokenCheck* token_check)
      : loop_(loop), token_check_(token_check) {}

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context, const v1::RegisterRequest* request,
                                     v1::RegisterResponse* response) override {
    return Answer<v1::RegisterResponse>(*token_check_, context, response,
                                        [&](auto reply) { loop_->Register(*request, reply); });
  }
  grpc::ServerUnaryReactor* Lease(grpc::CallbackServerContext* context, const v1::LeaseRequest* request,
                                  v1::LeaseResponse* response) override {
    return Answer<v1::LeaseResponse>(*token_check_, context, response,
                                     [&](auto reply) { loop_->Lease(*request, AliveWhile(context), reply); });
  }
  grpc::ServerUnaryReactor* Report(grpc::CallbackServerContext* context, const v1::ReportRequest* request,
                                   v1::ReportResponse* response) override {
    return Answer<v1::ReportResponse>(*token_check_, context, response,
                                      [&](auto reply) { loop_->Report(*request, reply); });
  }
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const v1::HeartbeatRequest* request,
                                      v1::HeartbeatResponse* response) override {
    return Answer<v1::HeartbeatResponse>(*token_check_, context, response,
                                         [&](auto reply) { loop_->Heartbeat(*request, reply); });
  }
  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context, const v1::LeaveRequest* request,
                                  v1::LeaveResponse* response) override {
    return Answer<v1::LeaveResponse>(*token_check_, context, response,
                                     [&](auto reply) { loop_->Leave(*request, reply); });
  }

 private:
  ServerLoop* const loop_;
  const TokenCheck* const token_check_;
};

class TuningServiceImpl final : public v1::TuningService::CallbackService {
 public:
  TuningServiceImpl(ServerLoop* loop, const TokenCheck* token_check)
      : loop_(loop), token_check_(token_check) {}

  grpc::ServerUnaryReactor* SubmitJob(grpc::CallbackServerContext* context,
                                      const v1::SubmitJobRequest* request,
                                      v1::SubmitJobResponse* response) override {
    return Answer<v1::SubmitJobResponse>(*token_check_, context, response,
                                         [&](auto reply) { loop_->SubmitJob(*request, reply); });
  }
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context, const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override {
    return Answer<v1::ListJobsResponse>(*token_check_, context, response,
                                        [&](auto reply) { loop_->ListJobs(*request, reply); });
  }
  grpc::ServerUnaryReactor* WatchJob(grpc::CallbackServerContext* context, const v1::WatchJobRequest* request,
                                     v1::WatchJobResponse* response) override {
    return Answer<v1::WatchJobResponse>(*token_check_, context, response, [&](auto reply) {
      loop_->WatchJob(*request, AliveWhile(context), reply);
    });
  }
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const v1::CancelJobRequest* request,
                                      v1::CancelJobResponse* response) override {
    return Answer<v1::CancelJobResponse>(*token_check_, context, response,
                                         [&](auto reply) { loop_->CancelJob(*request, reply); });
  }
  grpc::ServerUnaryReactor* LeaveJob(grpc::CallbackServerContext* context, const v1::LeaveJobRequest* request,
                                     v1::LeaveJobResponse* response) override {
    return Answer<v1::LeaveJobResponse>(*token_check_, context, response,
                                        [&](auto reply) { loop_->LeaveJob(*request, reply); });
  }
  grpc::ServerUnaryReactor* ListDevices(grpc::CallbackServerContext* context,
                                        const v1::ListDevicesRequest* request,
                                        v1::ListDevicesResponse* response) override {
    return Answer<v1::ListDevicesResponse>(*token_check_, context, response,
                                           [&](auto reply) { loop_->ListDevices(*request, reply); });
  }
  grpc::ServerUnaryReactor* Best(grpc::CallbackServerContext* context, const v1::BestRequest* request,
                                 v1::BestResponse* response) override {
    return Answer<v1::BestResponse>(*token_check_, context, response,
                                    [&](auto reply) { loop_->Best(*request, reply); });
  }

 private:
  ServerLoop* const loop_;
  const TokenCheck* const token_check_;
};

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> CredentialsOf(const ListenOptions& options) {
  if (options.tls_cert_file.empty() != options.tls_key_file.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key belong together; expected both or neither");
  }
  if (options.tls_cert_file.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions::PemKeyCertPair pair;
  MYCC_ASSIGN_OR_RETURN(pair.cert_chain, ReadFile(options.tls_cert_file, kMostSecretBytes));
  MYCC_ASSIGN_OR_RETURN(pair.private_key, ReadFile(options.tls_key_file, kMostSecretBytes));
  MYCC_RETURN_IF_ERROR(CheckCertificates(pair.cert_chain, options.tls_cert_file));
  MYCC_RETURN_IF_ERROR(CheckKey(pair.private_key, options.tls_key_file, pair.cert_chain));
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back(std::move(pair));
  return grpc::SslServerCredentials(tls);
}

absl::Status CheckProtection(const ListenOptions& options) {
  const bool is_protected = !options.tls_cert_file.empty() && !options.token_file.empty();
  if (IsLocal(options.address) || is_protected || options.insecure_allow_remote) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(options.address,
                   " can be reached from other hosts, which could run code on the "
                   "workers; expected --tls-cert, --tls-key and --token-file, or --insecure-allow-remote"));
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
  Impl(ServerLoop* loop, const std::string& token)
      : token_check(token), workers(loop, &token_check), tuning(loop, &token_check) {}

  const TokenCheck token_check;
  WorkerServiceImpl workers;
  TuningServiceImpl tuning;
  std::string address;
  std::optional<SocketLock> socket_lock;  // until gRPC has removed the socket
  std::unique_ptr<grpc::Server> server;
};

GrpcServer::GrpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::Status GrpcServer::Check(const ListenOptions& options) {
  MYCC_RETURN_IF_ERROR(CheckAddress(options.address));
  MYCC_RETURN_IF_ERROR(CheckProtection(options));
  MYCC_RETURN_IF_ERROR(CredentialsOf(options).status());
  return options.token_file.empty() ? absl::OkStatus() : ReadToken(options.token_file).status();
}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const ListenOptions& options,
                                                              ServerLoop* loop) {
  MYCC_RETURN_IF_ERROR(Check(options));
  MYCC_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ServerCredentials> credentials, CredentialsOf(options));
  std::string token;
  if (!options.token_file.empty()) {
    MYCC_ASSIGN_OR_RETURN(token, ReadToken(options.token_file));
  }
  KeepGrpcErrors();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  auto impl = std::make_unique<Impl>(loop, token);
  const std::string socket_path = SocketPath(options.address);
  if (!socket_path.empty()) {
    absl::StatusOr<SocketLock> lock = SocketLock::Take(socket_path);
    if (!lock.ok()) return CannotListen(options.address, lock.status().message());
    impl->socket_lock.emplace(*std::move(lock));
  }
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options.address, credentials, &port);
  // A second server on one port is an error, not a rival.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  // A message is in memory before its token is looked at.
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
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr || port == 0) return CannotListen(options.address, WhyNot());
  impl->address = !socket_path.empty()
                      ? options.address
                      : absl::StrCat(options.address.substr(0, options.address.rfind(':')), ":", port);
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(impl)));
}

GrpcServer::~GrpcServer() { impl_->server->Shutdown(std::chrono::system_clock::now() + kShutdownGrace); }

const std::string& GrpcServer::address() const { return impl_->address; }

}  // namespace mycc
