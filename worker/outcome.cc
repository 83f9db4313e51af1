#include "worker/outcome.h"

#include <csignal>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

std::string WithOutput(const std::string& what, const std::string& output) {
  const std::string text = std::string(absl::StripAsciiWhitespace(ToUtf8(output)));
  return text.empty() ? what : absl::StrCat(what, ": ", text);
}

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? absl::StrCat("signal ", signal) : absl::StrCat("SIG", name);
}

// libgomp says the first when it cannot start a team, and ends the process; the second is the system's word
// for a limit on processes and threads, which std::thread and fork carry.
bool LackedThreads(const std::string& output) {
  return output.find("Thread creation failed") != std::string::npos ||
         output.find("Resource temporarily unavailable") != std::string::npos;
}

}  // namespace

Ending EndingOf(Phase phase, const v1::ForkReply& reply, double wall_limit_seconds) {
  const bool build = phase == Phase::kBuild;
  const std::string who = build ? "the build" : "the run";
  const std::string output = reply.output();
  if (reply.unmade())
    return {v1::MEASURE_STATUS_WORKER_UNFIT,
            WithOutput(absl::StrCat("no process can be made for ", who), output)};
  if (reply.timed_out() || reply.signal() == SIGXCPU) {
    return {build ? v1::MEASURE_STATUS_BUILD_TIMEOUT : v1::MEASURE_STATUS_RUN_TIMEOUT,
            WithOutput(absl::StrFormat("%s took longer than its limit of %g s", who, wall_limit_seconds),
                       output)};
  }
  // Allocators that do not throw say so and abort.
  const bool said_so =
      output.find("out of memory") != std::string::npos || output.find("bad_alloc") != std::string::npos;
  if (reply.out_of_memory() || (said_so && reply.signal() == SIGABRT)) {
    return {v1::MEASURE_STATUS_OUT_OF_MEMORY, WithOutput(who + " ran out of memory", output)};
  }
  if (reply.signal() == SIGKILL) {
    return {v1::MEASURE_STATUS_WORKER_LOST, WithOutput(who + " was killed by somebody else", output)};
  }
  if (LackedThreads(output))
    return {v1::MEASURE_STATUS_WORKER_UNFIT,
            WithOutput(absl::StrCat("this host gave ", who, " no threads"), output)};
  const std::string how = reply.signal() != 0 ? absl::StrCat("died of ", SignalName(reply.signal()))
                                              : absl::StrCat("exited with ", reply.exit_code());
  return {build ? v1::MEASURE_STATUS_BUILD_ERROR : v1::MEASURE_STATUS_RUN_ERROR,
          WithOutput(absl::StrCat(who, " ", how), output)};
}

Ending EndingOf(Phase phase, const absl::Status& lost) {
  const std::string error =
      absl::StrCat(phase == Phase::kBuild ? "building" : "running", ": ", lost.message());
  return {absl::IsResourceExhausted(lost) ? v1::MEASURE_STATUS_WORKER_UNFIT : v1::MEASURE_STATUS_WORKER_LOST,
          ToUtf8(error)};
}

}  // namespace mycc
