#include "mycc_tune/thread_probe.h"

#include <future>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

constexpr int kThreads = 16;  // those of gRPC, and of a server or client

}  // namespace

absl::Status ProbeThreads(const StartThread& start) {
  std::promise<void> all;
  const std::shared_future<void> are_started = all.get_future().share();
  std::vector<std::thread> threads;
  absl::Status status;
  try {
    for (int i = 0; i < kThreads; ++i) threads.push_back(start([are_started] { are_started.wait(); }));
  } catch (const std::system_error& error) {
    status = absl::ResourceExhaustedError(absl::StrCat("the system gives ", threads.size(),
                                                       " threads; expected at least ", kThreads, " (",
                                                       error.what(), "; see ulimit -u)"));
  }
  all.set_value();
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace mycc
