// The services of the protocol: each call passes the gate, and then goes to the loop. Thread rule:
// thread-safe.
#pragma once

#include <memory>

#include "grpcpp/impl/service_type.h"
#include "server/call_gate.h"
#include "server/server_loop.h"

namespace mycc {

// `loop` and `gate` outlive them.
std::unique_ptr<grpc::Service> MakeWorkerService(ServerLoop* loop, CallGate* gate);
std::unique_ptr<grpc::Service> MakeTuningService(ServerLoop* loop, CallGate* gate);

}  // namespace mycc
