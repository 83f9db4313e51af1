// How well the analytic times alone order the candidates of tuning logs, with the round figures of each
// machine's family and with those that its worker measured (tuner/cost/machine_constants.h), together and
// each group of them alone. A pair counts when its times differ by more than 3 %. Prints a table.
//
// Usage: analytic_order LOG...      logs that random searches filled (model_objectives.sh), with constants in
// one
//                                   of them, at least
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "db/constants_store.h"
#include "proto/device_constants.h"
#include "server/device_choice.h"
#include "tests/perf/recorded_samples.h"
#include "tuner/cost/machine_constants.h"
#include "tuner/cost/metrics.h"

namespace mycc {
namespace {

constexpr double kClear = 0.03;
constexpr size_t kTop = 5;

// A group of constants; all others are left out. No name: all of them.
struct Group {
  const char* title;
  std::vector<const char*> names;
};
const Group kGroups[] = {
    {"family", {"none"}},
    {"measured", {}},
    {"core alone", {kClockConstant, kPeakOfThread, kFmaLatency}},
    {"L2, L3 alone", {kClockConstant, kL2OfThread, kL3OfThread}},
    {"memory alone", {kClockConstant, kMemoryOfThread}},
    {"threads alone",
     {kThreadsConstant, kLaunchTime, kPeakOfThread, kPeakOfAll, kL2OfThread, kL2OfAll, kL3OfThread, kL3OfAll,
      kMemoryOfThread, kMemoryOfAll}},
};

v1::DeviceConstants Part(const v1::DeviceConstants& all, const Group& group) {
  if (group.names.empty()) return all;
  v1::DeviceConstants part;
  part.set_version(all.version());
  for (const char* const name : group.names) {
    if (const double value = ConstantOf(all, name); value > 0) (*part.mutable_values())[name] = value;
  }
  return part;
}

absl::StatusOr<std::vector<StoredConstants>> ReadConstants(const std::vector<std::string>& logs) {
  std::vector<StoredConstants> known;
  for (const std::string& path : logs) {
    MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(path, OpenMode::kRead));
    MYCC_ASSIGN_OR_RETURN(const std::vector<StoredConstants> of_log, ConstantsStore(log.get()).List());
    known.insert(known.end(), of_log.begin(), of_log.end());
  }
  if (known.empty()) return absl::NotFoundError("no log has a device's constants; expected one, at least");
  return known;
}

// The mean over the tasks, and the worst.
absl::Status Judge(const Group& group, const std::vector<std::string>& logs, const DeviceChoice& devices) {
  const auto machine_of = [&](const Target& target) {
    const v1::DeviceConstants* const constants = devices.For(target);
    return constants == nullptr ? Machine(target) : MeasuredMachine(target, Part(*constants, group));
  };
  MYCC_ASSIGN_OR_RETURN(const auto tasks, ReadRecordedTasks(logs, machine_of));
  double pairwise = 0, worst = 1, top5 = 0;
  int counted = 0;
  for (const auto& [name, task] : tasks) {
    std::vector<Predicted> rows;
    for (const Sample& sample : task.samples) {
      if (sample.seconds)
        rows.push_back({std::log(sample.analytic_seconds), std::log(*sample.seconds), name});
    }
    if (rows.size() < 2 * kTop) continue;
    const double of_task = ClearPairs(rows, kClear);
    pairwise += of_task;
    worst = std::min(worst, of_task);
    top5 += BestOfTop(rows, kTop);
    ++counted;
  }
  if (counted == 0) return absl::NotFoundError("no task with 10 valid candidates; expected one, at least");
  std::printf("| %-13s | %17.3f | %10.3f | %13.3f |\n", group.title, pairwise / counted, worst,
              top5 / counted);
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status Run(const std::vector<std::string>& logs) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<StoredConstants> known, ReadConstants(logs));
  const DeviceChoice devices(known);
  std::printf("| figures       | pairwise accuracy | worst task | best of top 5 |\n");
  std::printf("|---------------|-------------------|------------|---------------|\n");
  for (const Group& group : kGroups) MYCC_RETURN_IF_ERROR(Judge(group, logs, devices));
  return absl::OkStatus();
}

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  const std::vector<std::string> logs(argv + 1, argv + argc);
  if (logs.empty()) {
    std::fprintf(stderr, "usage: analytic_order LOG...\n");
    return 2;
  }
  if (const absl::Status status = mycc::Run(logs); !status.ok()) {
    std::fprintf(stderr, "analytic_order: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
