// The server's network: both gRPC services, health and reflection, in front of the loop. Addresses that other
// hosts can reach need TLS, and callers that are known; on others the kernel tells which user of this host
// calls. docs/security.md says what each caller can do. Thread rule: thread-compatible.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/channel.h"
#include "server/access_files.h"
#include "server/call_ledger.h"
#include "server/server_loop.h"

namespace mycc {

struct ListenOptions {
  std::string address = kDefaultAddress;  // "host:port" (port 0: any free one) or "unix:/path"
  std::string tls_cert_file, tls_key_file;
  std::string token_file;          // clients and workers must show the token in it
  std::string access_file;         // or each its own token or certificate: access.json (access.h)
  std::string tls_client_ca_file;  // the authority of clients' and workers' certificates
  bool tls_require_client_certificate = false;  // a connection without one is refused before any call
  // A client shows its certificate when it connects. Connections are made anew after this time, so that a
  // client whose files have a new certificate shows that one.
  double connection_seconds = 600;
  // Anybody who can reach the address may submit jobs, which run code on the workers.
  bool insecure_allow_remote = false;
  // The memory of all messages that are arriving, and of their connections. Beyond it the server ends calls
  // (ResourceExhausted) and connections (Unavailable), regardless of the caller.
  size_t message_bytes = size_t{256} << 20;
  CallBounds bounds;
  std::function<void(const std::string&)> log;  // a line for people; may be null
};

class GrpcServer {
 public:
  // Listens and answers until it is destroyed; `loop` is started, and outlives it. Errors: InvalidArgument,
  // FailedPrecondition (an address that others can reach, without its protection), Unavailable (the address
  // is in use, or not this host's).
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const ListenOptions& options, ServerLoop* loop);
  ~GrpcServer();

  // The errors that Start would return before it listens: a malformed or unprotected address, a file that
  // cannot be read.
  static absl::Status Check(const ListenOptions& options);

  // The address where it listens, with the port that was chosen.
  const std::string& address() const;
  // The callers that it knows, for other protocols in the same process.
  const AccessFiles& access() const;
  // Looks now whether files of callers and certificates have changed; it does so by itself once a second.
  void RefreshAccess();

 private:
  struct Impl;
  static absl::Status Listen(const ListenOptions& options, Impl* impl);
  explicit GrpcServer(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace mycc
