// The server's side of TLS, whose certificate, key and authority are those of AccessFiles at the time of each
// handshake: they are replaced without a restart. Thread rule: thread-safe.
#pragma once

#include <memory>

#include "grpcpp/security/server_credentials.h"
#include "server/access_files.h"

namespace mycc {

// `files` has a certificate and a key, and outlives the server. Callers' certificates are asked for, and
// verified, where there is an authority of theirs; with `require`, nobody connects without one.
std::shared_ptr<grpc::ServerCredentials> WatchedTlsCredentials(const AccessFiles* files, bool require);

}  // namespace mycc
