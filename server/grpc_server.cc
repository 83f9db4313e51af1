#include "server/grpc_server.h"

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "google/protobuf/stubs/logging.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/server_posix.h"
#include "proto/grpc_log.h"
#include "server/call_gate.h"
#include "server/peer_listener.h"
#include "server/reflection_guard.h"
#include "server/services.h"
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
        options.address,
        " with TLS would serve every user of this host; expected --credentials, --access or --token-file"));
  }
  const bool is_protected = HasTls(options) && AsksCallers(options);
  if (is_protected || options.insecure_allow_remote) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      options.address,
      " can be reached from other hosts, which could run code on the workers; expected --credentials with a "
      "folder of `mycc-tune auth init`, or --tls-cert, --tls-key, and --access or --token-file, or "
      "--insecure-allow-remote"));
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
        workers(MakeWorkerService(loop, &gate)),
        tuning(MakeTuningService(loop, &gate)) {}

  const std::unique_ptr<AccessFiles> files;
  const std::unique_ptr<PeerListener> listener;  // null: gRPC listens itself
  CallGate gate;
  const std::unique_ptr<grpc::Service> workers, tuning;
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
  builder.RegisterService(impl->workers.get());
  builder.RegisterService(impl->tuning.get());
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
