// gRPC tells some of its errors to nobody but its own log, and prints that to the standard error. Here it is
// kept for who can say what it means. Thread rule: functions are re-entrant.
#pragma once

#include <string>

namespace mycc {

// Keeps the log's first error from now on, in place of printing it and all others. Whoever sets
// GRPC_VERBOSITY hears gRPC as it speaks.
void KeepGrpcErrors();

// The first error since then; empty: none.
std::string FirstGrpcError();

}  // namespace mycc
