// The main loop of a fork server's process, the other side of fork_server.h. It is single-threaded, without
// gRPC, OpenMP team or CUDA context, so that it may fork. It loads everything that requests share (LLVM's
// tables, shared pages) once.
#pragma once

#include <functional>
#include <string>

namespace mycc {

// Answers requests until the worker closes its end: each in a forked process of its own, which is killed with
// its group at the time limit. `handler` runs in that process, and turns a request's payload into the
// answer's. Returns the exit code of the program. REQUIRES: this process is single-threaded and was spawned
// by a ForkServer.
int ForkServerMain(const std::function<std::string(const std::string&)>& handler);

}  // namespace mycc
