#include "worker/child_main.h"

#include <cstdlib>

#include "process/child.h"
#include "process/fork_server_main.h"
#include "process/limits.h"
#include "worker/builder.h"
#include "worker/gpu_runner.h"
#include "worker/runner.h"

namespace mycc {
namespace {

// A handler of messages as one of bytes.
template <typename Request, typename Response>
std::function<std::string(const std::string&)> OverBytes(Response (*handler)(const Request&)) {
  return [handler](const std::string& payload) {
    Request request;
    // The payload was written by this program a moment ago; one that does not parse is answered as an empty
    // request.
    (void)request.ParseFromString(payload);
    return handler(request).SerializeAsString();
  };
}

}  // namespace

std::optional<int> RunWorkerChild(int argc, char** argv) {
  if (argc != 3) return std::nullopt;
  const std::string command = argv[1];
  const bool build = command == kBuildCommand, run = command == kRunCommand, gpu = command == kGpuRunCommand;
  if (!build && !run && !gpu) return std::nullopt;
  if (!DieWithParent(std::atoi(argv[2]))) return 1;
  if (gpu) return GpuRunnerMain();
  return ForkServerMain(build ? OverBytes(&HandleBuildRequest) : OverBytes(&HandleRunnerRequest));
}

}  // namespace mycc
