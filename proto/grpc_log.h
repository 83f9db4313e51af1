// Keeps the first error that gRPC prints to its own log, for a caller that can explain it. gRPC reports some
// errors nowhere else. Thread rule: functions are re-entrant.
#pragma once

#include <string>

namespace mycc {

// Keeps the log's first error from now on, in place of printing it and all others. A user who sets
// GRPC_VERBOSITY hears gRPC as it speaks.
void KeepGrpcErrors();

// The first error since then; empty: none.
std::string FirstGrpcError();

}  // namespace mycc
