// Says whether the tests of this build can judge what runs behind gRPC.
#pragma once

#include "absl/base/config.h"

namespace mycc {

// ThreadSanitizer must see each lock that orders two accesses. Debian's gRPC and Abseil are built without it,
// so it reports hundreds of accesses in gRPC's own headers. There is no file of suppressions, because each
// line of one would hide accesses of ours:
//
// - `called_from_lib:libgrpc++.so` and `race:grpc::` match any frame: a handler is called by gRPC, so they
// match
//   every race of a handler.
// - `race_top:grpc::` matches gRPC's headers alone. It leaves the reports whose top is the destructor of a
//   message or a std::function: gRPC hands them from thread to thread under locks that are not seen. A line
//   for those (`race_top:~LeaseRequest`) would hide a handler that keeps a pointer to its message.
//
// In place of that, nothing that threads share lies behind gRPC. The tests with the label `threads` judge
// without it, and without suppressions: the loop (server_loop_test, service_test InProcess), how a call ends
// when its answer, its caller and a revocation come at once (open_calls_test), the bounds of callers
// (call_ledger.h), files that change while calls are looked up (access_files_test), and the thread that
// accepts connections (peer_listener_test). The services (worker_service.cc, tuning_service.cc) have no
// members but pointers to these. Not judged is the gate's memory of certificates (call_gate.cc), under one
// lock that Clang's analysis checks. planted_race.cc shows that a race in a handler's way of answering is
// reported.
#ifdef ABSL_HAVE_THREAD_SANITIZER
inline constexpr bool kGrpcCanBeJudged = false;
#else
inline constexpr bool kGrpcCanBeJudged = true;
#endif

}  // namespace mycc
