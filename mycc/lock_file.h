// A lock file: all that a build used besides its source, so that any host makes the same bytes again without
// the tuning log, or says what differs. Thread rule: values; functions are re-entrant.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/program/program.h"
#include "codegen/target/target.h"
#include "command/model.h"
#include "mycc/finder.h"
#include "mycc/groupings.h"

namespace mycc {

struct LockedKernel {
  std::string name, workload_hash, code_digest, trace, reason;
  std::optional<int64_t> record;
  std::optional<double> expected_seconds = std::nullopt, predicted_seconds = std::nullopt;
};

struct LockFile {
  std::string target, toolchain;
  std::string model;  // the digest of a model's program; empty for workloads
  // The options of a model; nullopt in the lock files of builds that did not write them.
  std::optional<std::map<std::string, std::string>> options;
  std::vector<std::string> groupings;  // names of the alternatives in place of a model's default kernels
  std::vector<LockedKernel> kernels;
};

// The lock file of a build with these kernels. `program` is null for workloads.
absl::StatusOr<LockFile> LockOf(const ModelSource& source, const Target& target,
                                const std::vector<Found>& found, const ModelProgram* program,
                                const std::vector<ChosenGrouping>& groupings);

// JSON, one kernel after the other. InvalidArgument, naming the file, for what is no lock file.
std::string PrintLock(const LockFile& lock);
absl::StatusOr<LockFile> ReadLock(const std::string& file);

// FailedPrecondition for a model with a lock file of workloads, or the other way round, and with the first
// option of the model that is another here than in the lock file.
absl::Status CheckLockedSource(const LockFile& lock, const ModelSource& source);

// The kernels of a locked build. FailedPrecondition with what differs: the toolchain, the model, a workload,
// or the code made from it.
absl::StatusOr<std::vector<Found>> CompileLocked(const LockFile& lock, const std::vector<Workload>& workloads,
                                                 const Target& target, const ModelProgram* program);

}  // namespace mycc
