// The cost of confinement: a request of a fork server, and the time of a measured kernel, with and without it
// in turn. Prints `request_ms:` and `confined_request_ms:` (medians), and for each kernel `time_ratio NAME:`,
// the median over the rounds of its time with confinement over that without, with the middle half of the
// rounds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_folder.h"
#include "process/confine.h"
#include "process/fork_server.h"
#include "process/fork_server_main.h"
#include "worker/child_main.h"
#include "worker/cpu_measurer.h"

namespace mycc {
namespace {

constexpr char kEchoCommand[] = "internal-echo";
constexpr int kRequests = 200, kRounds = 15;

struct Kernel {
  const char* name;
  const char* workload;
  const char* traces[2];
};
constexpr Kernel kKernels[] = {
    {"small",
     "workload doubling(x: f32[64000]) -> (y: f32[64000]) {\n  y[i] = x[i] * 2.0\n}\n",
     {"v1\nsplit(t1.a0, [8])\nbind(t1.a0.1, vector)\n", "v1\nsplit(t1.a0, [640])\n"}},
    {"gemm",
     "workload gemm(x: f32[96,96], w: f32[96,96]) -> (y: f32[96,96]) {\n"
     "  y[i,j] = sum[k:96](x[i,k] * w[k,j])\n}\n",
     {"v1\n", "v1\nsplit(t2.a0, [8])\n"}},
};

double Median(std::vector<double> values, double at = 0.5) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(at * static_cast<double>(values.size() - 1))];
}

double RequestSeconds(ForkServer* server) {
  v1::ForkRequest request;
  request.set_payload("hello");
  request.set_wall_seconds(20);
  const auto start = std::chrono::steady_clock::now();
  if (const auto reply = server->Call(request); !reply.ok() || !reply->answered()) {
    fprintf(stderr, "a request was not answered\n");
    std::exit(1);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void TimeRequests() {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  GiveToChildren(folder.path());
  Confinement confinement;
  confinement.mode = ConfinementMode::kRequired;
  confinement.writable = {folder.path()};
  ForkServer plain(kEchoCommand), confined(kEchoCommand, {}, confinement);
  std::vector<double> plain_seconds, confined_seconds;
  for (int i = 0; i < kRequests; ++i) {
    plain_seconds.push_back(RequestSeconds(&plain));
    confined_seconds.push_back(RequestSeconds(&confined));
  }
  printf("request_ms: %.3f\nconfined_request_ms: %.3f\n", 1e3 * Median(plain_seconds),
         1e3 * Median(confined_seconds));
}

std::unique_ptr<CpuMeasurer> Measurer(ConfinementMode mode) {
  CpuMeasurerOptions options;
  options.confinement.mode = mode;
  auto measurer = CpuMeasurer::Create(options);
  if (measurer.ok()) return *std::move(measurer);
  fprintf(stderr, "%s\n", std::string(measurer.status().message()).c_str());
  std::exit(1);
}

// The time of the first trace, timed in turn with the second, so that its binary runs each time.
double KernelSeconds(CpuMeasurer* measurer, const Kernel& kernel, const std::string& target) {
  v1::Assignment assignment;
  assignment.set_workload(kernel.workload);
  assignment.set_target(target);
  assignment.set_trace(kernel.traces[0]);
  assignment.add_rivals(kernel.traces[1]);
  assignment.set_protocol(v1::TIMING_PROTOCOL_WARM);
  double seconds = 0;
  std::string error;
  measurer->Measure(
      {assignment}, [](const v1::LeaseId&) { return false; },
      [&](const v1::Assignment&, const std::vector<v1::MeasureResult>& results) {
        seconds = results[0].timing().seconds();
        error = results[0].error();
      });
  if (seconds > 0) return seconds;
  fprintf(stderr, "%s was not timed: %s\n", kernel.name, error.c_str());
  std::exit(1);
}

void TimeKernels() {
  const auto plain = Measurer(ConfinementMode::kOff), confined = Measurer(ConfinementMode::kRequired);
  for (const Kernel& kernel : kKernels) {
    for (const int threads : {1, 2}) {
      const std::string target = "v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=" + std::to_string(threads);
      std::vector<double> ratios;
      for (int round = 0; round < kRounds; ++round) {
        double seconds[2];
        for (const int turn : {0, 1}) {
          const bool is_confined = (turn + round) % 2 == 0;
          seconds[is_confined ? 1 : 0] =
              KernelSeconds((is_confined ? confined : plain).get(), kernel, target);
        }
        ratios.push_back(seconds[1] / seconds[0]);
      }
      printf("time_ratio %s on %d threads: %.4f (%.4f .. %.4f)\n", kernel.name, threads, Median(ratios),
             Median(ratios, 0.25), Median(ratios, 0.75));
    }
  }
}

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], mycc::kEchoCommand) == 0) {
    const auto confinement = mycc::Confinement::FromArguments({argv + 3, argv + argc});
    if (!confinement.ok()) return 1;
    mycc::Confine(*confinement, std::atoi(argv[2]));
    return mycc::ForkServerMain([](const std::string& payload) { return payload; });
  }
  if (const std::optional<int> child = mycc::RunWorkerChild(argc, argv)) return *child;
  mycc::TimeRequests();
  mycc::TimeKernels();
  return 0;
}
