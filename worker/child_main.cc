#include "worker/child_main.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "process/child.h"
#include "process/confine.h"
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

std::optional<int> RunWorkerChild(int argc, char** argv, RunnerHandler run) {
  if (argc < 3) return std::nullopt;
  const std::string command = argv[1];
  const bool builds = command == kBuildCommand, runs = command == kRunCommand,
             has_gpu = command == kGpuRunCommand, only_tells = command == kConfineCommand;
  if (!builds && !runs && !has_gpu && !only_tells) return std::nullopt;
  const pid_t parent = std::atoi(argv[2]);
  if (!DieWithParent(parent)) return 1;
  const absl::StatusOr<Confinement> confinement =
      Confinement::FromArguments(std::vector<std::string>(argv + 3, argv + argc));
  if (!confinement.ok()) {
    fprintf(stderr, "mycc-tune: %s: %s\n", argv[1], std::string(confinement.status().message()).c_str());
    return 1;
  }
  if (only_tells) return ConfineMain(*confinement, parent);
  Confine(*confinement, parent);  // the worker has told what is missing
  if (has_gpu) return GpuRunnerMain();
  return ForkServerMain(builds ? OverBytes(&HandleBuildRequest) : OverBytes(run));
}

std::optional<int> RunWorkerChild(int argc, char** argv) {
  return RunWorkerChild(argc, argv, &HandleRunnerRequest);
}

}  // namespace mycc
