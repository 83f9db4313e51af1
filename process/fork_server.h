// A fork server: a child process of the worker that answers each request in a forked process of its own.
//
//   worker ---spawn---> fork server (one of this program's hidden commands) ---fork---> one request, under
//   limits
//
// It may be confined (process/confine.h); then the process that is spawned keeps the fork server.
//
// The worker runs gRPC and threads, so it must not fork. The fork server runs neither, so it can, and a fork
// costs a millisecond where a new program costs fifty. A candidate may crash, hang, exhaust or overwrite
// memory: the next request starts in a clean process. Thread rule: thread-compatible. Calls come from one
// thread that outlives the fork server, because the fork server dies with the thread that spawned it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "process/child.h"
#include "process/confine.h"
#include "proto/measure.pb.h"

namespace mycc {

class ForkServer {
 public:
  // `command` is a hidden command of this program; `environment` is added to this process' own
  // ("NAME=value").
  explicit ForkServer(std::string command, std::vector<std::string> environment = {},
                      const Confinement& confinement = {});

  // Starts the process where there is none, so that it is ready when it is needed. A failure is heard with
  // the next call.
  void WarmUp();
  // Starts the process where there is none (also after a loss) and has the request answered. Unavailable when
  // the fork server itself was lost; ResourceExhausted when it was lost to the system's need for memory, or
  // could not be started. Both say nothing about the request.
  absl::StatusOr<v1::ForkReply> Call(const v1::ForkRequest& request);

  pid_t pid() const { return child_.pid(); }  // 0: not running

 private:
  Child child_;
};

}  // namespace mycc
