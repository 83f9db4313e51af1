// Chooses how a model is cut into kernels, where there are alternatives: by the times of a tuning log, or as
// a lock file says. Thread rule: functions are re-entrant.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/program/program.h"
#include "codegen/target/target.h"
#include "command/model.h"
#include "mycc/finder.h"

namespace mycc {

// How errors begin where a lock file was written for other kernels.
inline constexpr char kOtherModel[] =
    "the model is another than that of the lock file, or is cut into other kernels";

// Kernels that are launched in place of others.
struct ChosenGrouping {
  std::string name;                     // the alternative's
  std::vector<std::string> instead_of;  // the names of the kernels in whose place they are
  std::vector<std::string> parts;       // their names
  // The sums over all launches by the log; absent where a lock file chose.
  std::optional<double> seconds, default_seconds;
};
using ChooseGroupings = std::function<absl::StatusOr<std::vector<ChosenGrouping>>(const ModelProgram&)>;

// For each kernel the alternative that is faster than the kernel by records of the exact workloads and
// target, under one protocol; none where a time is missing. The other layout, where it is faster than all
// kernels that it replaces with what is chosen for them. Errors are those of a damaged log.
absl::StatusOr<std::vector<ChosenGrouping>> FastestGroupings(const ModelProgram& program,
                                                             const ScheduleFinder& finder);

// The alternatives of these names. FailedPrecondition for a name that the program does not have.
absl::StatusOr<std::vector<ChosenGrouping>> GroupingsNamed(const ModelProgram& program,
                                                           const std::vector<std::string>& names);

// Reads a model, and makes its program with the groupings and the layout that are chosen among the preferred
// program's alternatives.
absl::StatusOr<ModelProgram> ReadModelWith(const ModelSource& source, const Target& target,
                                           const ChooseGroupings& choose,
                                           std::vector<ChosenGrouping>* groupings);

// "k5_conv_add: split into k5a_conv and k5b_add, 210.000 us instead of 250.000 us by the log",
// "images: planes, 2.100 ms instead of 2.500 ms by the log"
std::string GroupingLine(const ChosenGrouping& grouping);

}  // namespace mycc
