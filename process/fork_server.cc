#include "process/fork_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "process/limits.h"

namespace mycc {
namespace {

// The time that the fork server may need beyond a request's own limit, to kill, collect and answer.
constexpr double kGraceSeconds = 10;

}  // namespace

ForkServer::ForkServer(std::string command, std::vector<std::string> environment,
                       const Confinement& confinement)
    : child_({std::move(command), confinement.ToArguments(), std::move(environment)}) {}

void ForkServer::WarmUp() {
  if (child_.pid() == 0) (void)child_.Start();
}

absl::StatusOr<v1::ForkReply> ForkServer::Call(const v1::ForkRequest& request) {
  if (child_.pid() == 0) {
    const absl::Status started = child_.Start();
    if (!started.ok()) return absl::ResourceExhaustedError(started.message());
  }
  const int64_t memory_kills = MemoryKills();
  const Deadline deadline =
      request.wall_seconds() > 0 ? After(request.wall_seconds() + kGraceSeconds) : kNoDeadline;
  absl::Status lost = child_.Write(request.SerializeAsString());
  if (lost.ok()) {
    absl::StatusOr<std::string> answer = child_.Read(deadline);
    v1::ForkReply reply;
    if (answer.ok() && reply.ParseFromString(*answer)) return reply;
    lost = answer.ok() ? absl::DataLossError("its answer does not parse") : answer.status();
  }
  child_.Kill();
  const std::string what = absl::StrCat(child_.command().command, " was lost: ", lost.message());
  return MemoryKills() > memory_kills ? absl::ResourceExhaustedError(what) : absl::UnavailableError(what);
}

}  // namespace mycc
