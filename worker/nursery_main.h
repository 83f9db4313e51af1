// The other side of a Nursery: the loop of its process. Single-threaded, so that forking is sound: it holds
// no gRPC, no OpenMP team and no CUDA context, and what it loads for all requests alike (LLVM's tables,
// shared pages) is paid for once.
#pragma once

#include <functional>
#include <string>

namespace mycc {

// Answers requests until the worker closes its end: each in a forked process of its own, which is killed with
// its group at the time limit. `handler` runs in that process, and turns a request's payload into the
// answer's. Returns the exit code of the program. REQUIRES: this process is single-threaded and was spawned
// by a Nursery.
int NurseryMain(const std::function<std::string(const std::string&)>& handler);

}  // namespace mycc
