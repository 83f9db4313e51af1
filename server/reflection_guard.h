// gRPC answers reflection by itself, so no handler of ours stands before it: this guard does. Thread rule:
// thread-safe.
#pragma once

#include <memory>

#include "grpcpp/support/server_interceptor.h"
#include "server/call_gate.h"

namespace mycc {

// Cancels calls of reflection by callers without the role read. `gate` outlives the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> ReflectionGuard(const CallGate* gate);

}  // namespace mycc
