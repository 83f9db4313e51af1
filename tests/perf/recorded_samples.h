// The samples of the cost model that a tuning log's records give: each record's trace is replayed, and its
// features stand beside its measured time. Thread rule: a pure function of the file.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/target/target.h"
#include "tuner/cost/sample.h"
#include "tuner/space/machine.h"

namespace mycc {

struct RecordedTask {
  std::string name;             // the workload's own name, for people
  std::vector<Sample> samples;  // in the order of the log; the group is the workload's hash and target
};

// The tasks of `logs`, by group. Records whose trace does not replay any more are left out, and so are
// repeated measurements of a trace. Errors name the file. `machine` gives the figures of a target's machine;
// null: those of its family.
using MachineOfTarget = std::function<Machine(const Target&)>;
absl::StatusOr<std::map<std::string, RecordedTask>> ReadRecordedTasks(
    const std::vector<std::string>& logs, const MachineOfTarget& machine = nullptr);

}  // namespace mycc
