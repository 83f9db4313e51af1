// Checks that the system gives a program the threads that gRPC starts: where it refuses them (`ulimit -u`),
// gRPC waits for ever.
#pragma once

#include <functional>
#include <thread>

#include "absl/status/status.h"

namespace mycc {

using StartThread = std::function<std::thread(const std::function<void()>&)>;

// Starts the threads at once, and ends them. ResourceExhausted when `start` throws std::system_error, as
// std::thread does.
absl::Status ProbeThreads(const StartThread& start = [](const std::function<void()>& work) {
  return std::thread(work);
});

}  // namespace mycc
