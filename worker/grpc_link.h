// The worker's connection to its server over gRPC. Thread rule: thread-safe.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "proto/channel.h"
#include "worker/server_link.h"

namespace mycc {

absl::StatusOr<std::unique_ptr<ServerLink>> ConnectToServer(const ServerAddress& address);

}  // namespace mycc
