// How fast a compile farm tunes: 574 candidates of the GPU suite on 10 build workers, in simulated time, with
// the recorded times of a tune on an H200 (farm_simulation.h). Prints the time until the 574th result is in
// the log, the work that there is, and the same for other farms. compile_farm.sh runs it.
//
// Usage: compile_farm [--quick] SUITE RECORDED
//   --quick   four workloads of the suite; exits with 1 where a farm does not finish
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/file.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/print.h"
#include "tests/perf/farm_simulation.h"

namespace mycc {
namespace {

constexpr char kTarget[] = "v1 cuda arch=sm_90a model=\"NVIDIA H200\" sms=132 smem=232448 l2=60M";
constexpr uint32_t kTrialsOfTask = 24;
constexpr int64_t kCandidates = 574;
constexpr double kMostSeconds = 3600;

struct Farm {
  const char* what;
  int build_hosts, devices, cores;
  v1::WorkerRole role;  // of the hosts with devices
};

struct Outcome {
  double seconds = 0;         // until the candidates had results
  double built = 0;           // until as many were built for others
  double search_seconds = 0;  // of CPU
  double busy = 0;            // share of the devices' time until then
};

Outcome Simulate(const Farm& farm, const std::vector<Workload>& suite, const std::string& recorded,
                 int64_t candidates) {
  RecordedTrials trials(recorded);
  FarmSimulation simulation((Assumptions()));
  std::vector<std::unique_ptr<SimulatedHost>> builders, devices;
  for (int i = 0; i < farm.build_hosts; ++i) {
    builders.push_back(std::make_unique<SimulatedHost>(&simulation, &trials, absl::StrCat("build", i),
                                                       v1::WORKER_ROLE_BUILD, farm.cores, kTarget));
  }
  for (int i = 0; i < farm.devices; ++i) {
    devices.push_back(std::make_unique<SimulatedHost>(&simulation, &trials, absl::StrCat("device", i),
                                                      farm.role, farm.cores, kTarget));
  }
  v1::SubmitJobRequest request;
  for (const Workload& workload : suite)
    request.mutable_spec()->add_tasks()->set_workload(absl::StrCat("v1 ", PrintWorkload(workload)));
  request.mutable_spec()->set_target(kTarget);
  request.mutable_spec()->set_trials(kTrialsOfTask);
  request.mutable_spec()->set_strategy("evolutionary");
  request.mutable_spec()->set_seed(1);
  simulation.server().Submit(request, [](const absl::StatusOr<v1::JobProgress>& progress) {
    MYCC_CHECK(progress.ok()) << progress.status();
  });
  const double start = simulation.now();
  Outcome outcome;
  const auto have_results = [&] {
    int64_t finished = 0, built = 0;
    for (const auto& host : builders) finished += host->finished(), built += host->built();
    for (const auto& host : devices) finished += host->finished();
    if (built >= candidates && outcome.built == 0) outcome.built = simulation.now() - start;
    return finished >= candidates;
  };
  MYCC_CHECK(simulation.RunUntil(have_results, kMostSeconds)) << "not finished within an hour";
  outcome.seconds = simulation.now() - start;
  outcome.search_seconds = simulation.search_seconds();
  for (const auto& host : devices)
    outcome.busy += host->busy_seconds() / outcome.seconds / static_cast<double>(farm.devices);
  return outcome;
}

int Main(bool quick, const std::string& suite_path, const std::string& recorded_path) {
  const std::string recorded = ReadFile(recorded_path).value();
  std::vector<Workload> suite = ParseWorkloads(ReadFile(suite_path).value(), suite_path).value();
  if (quick) suite.erase(suite.begin() + 4, suite.end());
  const int64_t candidates = quick ? static_cast<int64_t>(suite.size() * kTrialsOfTask) : kCandidates;
  const RecordedTrials trials(recorded);
  std::printf("recorded: %lld candidates, %.0f s of builds (the longest %.1f s), %.0f s of measuring\n",
              static_cast<long long>(trials.size()), trials.build_seconds(), trials.longest_build(),
              trials.run_seconds());
  const Farm farms[] = {
      {"10 build workers, 10 devices, all of 16 cores", 10, 10, 16, v1::WORKER_ROLE_MEASURE},
      {"10 build workers of 16 cores, 4 devices", 10, 4, 16, v1::WORKER_ROLE_MEASURE},
      {"10 build workers of 4 cores, 10 devices of 4 cores", 10, 10, 4, v1::WORKER_ROLE_MEASURE},
      {"no build workers, 10 devices of 16 cores that build", 0, 10, 16, v1::WORKER_ROLE_BOTH},
      {"no build workers, 10 devices of 4 cores that build", 0, 10, 4, v1::WORKER_ROLE_BOTH},
  };
  double goal = 0;
  for (const Farm& farm : farms) {
    const Outcome outcome = Simulate(farm, suite, recorded, candidates);
    std::printf(
        "%-52s %6.1f s; all built after %5.1f s; devices busy %3.0f %%; the search took %.1f s of CPU\n",
        farm.what, outcome.seconds, outcome.built, 100 * outcome.busy, outcome.search_seconds);
    std::fflush(stdout);
    if (goal == 0) goal = outcome.seconds;
  }
  std::printf("\ncompile_farm_574_s: %.1f\n", goal);
  return 0;
}

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::string(argv[1]) == "--quick";
  if (argc != 3 + quick) {
    std::fprintf(stderr, "usage: compile_farm [--quick] SUITE RECORDED\n");
    return 2;
  }
  return mycc::Main(quick, argv[argc - 2], argv[argc - 1]);
}
