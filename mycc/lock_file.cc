#include "mycc/lock_file.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "codegen/driver/compile.h"
#include "codegen/program/digest.h"
#include "codegen/workload/canonical.h"

namespace mycc {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kLockVersion = 1;

absl::Status Differs(const std::string& what, const std::string& here, const std::string& locked) {
  return absl::FailedPreconditionError(
      absl::StrCat("--lock: ", what, " is ", here, " here, and ", locked, " in the lock file"));
}

// Whether the kernels compute what those of the lock file do. Those of a model do not where it is another
// one.
absl::Status CheckWorkloads(const LockFile& lock, const std::vector<Workload>& workloads) {
  const std::string model = lock.model.empty() ? "" : absl::StrCat(kOtherModel, ": ");
  if (workloads.size() != lock.kernels.size())
    return Differs(absl::StrCat(model, "the number of kernels"), absl::StrCat(workloads.size()),
                   absl::StrCat(lock.kernels.size()));
  for (size_t i = 0; i < workloads.size(); ++i) {
    const LockedKernel& locked = lock.kernels[i];
    if (const std::string hash = WorkloadHash(workloads[i]); hash != locked.workload_hash)
      return Differs(absl::StrCat(model, "workload ", workloads[i].name), hash,
                     absl::StrCat(locked.workload_hash, " (", locked.name, ")"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Found> CompileLockedKernel(const LockedKernel& locked, const Workload& workload,
                                          const Target& target) {
  const std::string what = absl::StrCat("workload ", workload.name);
  MYCC_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(locked.trace));
  MYCC_ASSIGN_OR_RETURN(KernelSpec kernel, CompileKernel(workload, target, trace));
  MYCC_ASSIGN_OR_RETURN(const std::string digest, CodeDigestOf(kernel, target));
  if (digest != locked.code_digest)
    return Differs(absl::StrCat("the code of ", what), digest, locked.code_digest);
  kernel.reason = ParseReason(locked.reason).value_or(Reason::kTrace);
  kernel.record = locked.record;
  kernel.expected_seconds = locked.expected_seconds;
  kernel.predicted_seconds = locked.predicted_seconds;
  return Found{std::move(kernel), "from the lock file"};
}

}  // namespace

absl::StatusOr<LockFile> LockOf(const ModelSource& source, const Target& target,
                                const std::vector<Found>& found, const ModelProgram* program,
                                const std::vector<ChosenGrouping>& groupings) {
  LockFile lock;
  MYCC_ASSIGN_OR_RETURN(lock.options, OptionsOf(source));
  lock.target = PrintTarget(target);
  MYCC_ASSIGN_OR_RETURN(lock.toolchain, ToolchainOf(target));
  if (program != nullptr) lock.model = ProgramDigest(*program);
  for (const ChosenGrouping& grouping : groupings) lock.groupings.push_back(grouping.name);
  for (const Found& row : found) {
    const KernelSpec& kernel = row.kernel;
    MYCC_ASSIGN_OR_RETURN(const std::string digest, CodeDigestOf(kernel, target));
    lock.kernels.push_back({kernel.workload.name, WorkloadHash(kernel.workload), digest,
                            PrintTrace(kernel.trace), ReasonName(kernel.reason), kernel.record,
                            kernel.expected_seconds, kernel.predicted_seconds});
  }
  return lock;
}

std::string PrintLock(const LockFile& lock) {
  Json kernels = Json::array();
  for (const LockedKernel& kernel : lock.kernels) {
    Json row = {{"name", kernel.name},
                {"workload_hash", kernel.workload_hash},
                {"code_digest", kernel.code_digest},
                {"reason", kernel.reason},
                {"trace", kernel.trace}};
    if (kernel.record) row["record"] = *kernel.record;
    if (kernel.expected_seconds) row["expected_seconds"] = *kernel.expected_seconds;
    if (kernel.predicted_seconds) row["predicted_seconds"] = *kernel.predicted_seconds;
    kernels.push_back(std::move(row));
  }
  Json json = {{"mycc_lock", kLockVersion},
               {"target", lock.target},
               {"toolchain", lock.toolchain},
               {"model", lock.model},
               {"options", lock.options.value_or(std::map<std::string, std::string>())}};
  if (!lock.groupings.empty()) json["groupings"] = lock.groupings;
  json["kernels"] = std::move(kernels);
  return json.dump(2) + "\n";
}

absl::StatusOr<LockFile> ReadLock(const std::string& file) {
  MYCC_ASSIGN_OR_RETURN(const std::string text, ReadText(file, kMostSourceBytes));
  try {
    const Json json = Json::parse(text);
    if (json.at("mycc_lock").get<int>() != kLockVersion) {
      return absl::InvalidArgumentError(absl::StrCat("`", file, "` is a lock file of version ",
                                                     json.at("mycc_lock").dump(), "; expected ",
                                                     kLockVersion));
    }
    LockFile lock{json.at("target").get<std::string>(),
                  json.at("toolchain").get<std::string>(),
                  json.at("model").get<std::string>(),
                  std::nullopt,
                  json.value("groupings", std::vector<std::string>()),
                  {}};
    if (json.contains("options")) lock.options = json.at("options").get<std::map<std::string, std::string>>();
    for (const Json& row : json.at("kernels")) {
      LockedKernel kernel{
          row.at("name").get<std::string>(),        row.at("workload_hash").get<std::string>(),
          row.at("code_digest").get<std::string>(), row.at("trace").get<std::string>(),
          row.at("reason").get<std::string>(),      std::nullopt};
      if (row.contains("record")) kernel.record = row.at("record").get<int64_t>();
      if (row.contains("expected_seconds"))
        kernel.expected_seconds = row.at("expected_seconds").get<double>();
      if (row.contains("predicted_seconds"))
        kernel.predicted_seconds = row.at("predicted_seconds").get<double>();
      lock.kernels.push_back(std::move(kernel));
    }
    return lock;
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", file, "` is no lock file that `mycc compile --write-lock` wrote: ", error.what()));
  }
}

absl::Status CheckLockedSource(const LockFile& lock, const ModelSource& source) {
  const auto form = [](bool is_model) { return is_model ? "a model" : "a file of workloads"; };
  const bool is_model = IsModel(source.file), was_model = !lock.model.empty();
  if (is_model != was_model) return Differs(source.file, form(is_model), form(was_model));
  if (!lock.options) return absl::OkStatus();
  MYCC_ASSIGN_OR_RETURN(auto here, OptionsOf(source));
  auto locked = *lock.options;
  for (const auto& [option, value] : *lock.options) here.try_emplace(option, "not given");
  for (const auto& [option, value] : here) {
    const std::string& other = locked.try_emplace(option, "not given").first->second;
    if (value == other) continue;
    const absl::Status status = Differs(option, value, other);
    return absl::Status(status.code(), absl::StrCat(std::string(status.message()),
                                                    "; expected the model and the options of that build"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Found>> CompileLocked(const LockFile& lock, const std::vector<Workload>& workloads,
                                                 const Target& target, const ModelProgram* program) {
  if (PrintTarget(target) != lock.target) return Differs("the target", PrintTarget(target), lock.target);
  MYCC_ASSIGN_OR_RETURN(const std::string toolchain, ToolchainOf(target));
  if (toolchain != lock.toolchain) return Differs("the toolchain", toolchain, lock.toolchain);
  MYCC_RETURN_IF_ERROR(CheckWorkloads(lock, workloads));
  std::vector<Found> found;
  for (size_t i = 0; i < workloads.size(); ++i) {
    MYCC_ASSIGN_OR_RETURN(Found kernel, CompileLockedKernel(lock.kernels[i], workloads[i], target));
    found.push_back(std::move(kernel));
  }
  // Last, because a differing workload says more about the model.
  const std::string model = program == nullptr ? "" : ProgramDigest(*program);
  if (model != lock.model) return Differs("the model (its weights, names or launches)", model, lock.model);
  return found;
}

}  // namespace mycc
