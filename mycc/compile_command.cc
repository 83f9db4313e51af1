// `mycc compile`: finds a schedule for each workload, writes the library, and prints where each came from.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/output_file.h"
#include "base/status.h"
#include "codegen/artifact/entry.h"
#include "codegen/artifact/library.h"
#include "codegen/artifact/program_library.h"
#include "codegen/workload/canonical.h"
#include "command/colour.h"
#include "command/misuse.h"
#include "command/model.h"
#include "command/table.h"
#include "command/times.h"
#include "mycc/commands.h"
#include "mycc/lock_file.h"
#include "mycc/model_report.h"
#include "mycc/precision_check.h"

namespace mycc {
namespace {

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// layers-v2.te -> layers_v2
std::string ModuleOf(const std::string& file) {
  std::string module = std::filesystem::path(file).stem().string();
  for (char& c : module) c = IsWordCharacter(c) ? c : '_';
  if (module.empty() || (module[0] >= '0' && module[0] <= '9')) module = "m" + module;
  return module;
}

absl::Status CheckModule(const std::string& module) {
  const bool digit_first = !module.empty() && module[0] >= '0' && module[0] <= '9';
  if (!module.empty() && !digit_first && std::ranges::all_of(module, IsWordCharacter))
    return absl::OkStatus();
  return Misuse(absl::StrCat("--name: `", module, "` is no C identifier; expected letters, digits and _"));
}

std::string ReasonTable(const std::vector<Found>& found) {
  constexpr size_t kReasonColumn = 1;
  std::vector<std::vector<std::string>> rows = {{"function", "reason", "record", "expected", "why"}};
  for (const Found& row : found) {
    const KernelSpec& kernel = row.kernel;
    rows.push_back({kernel.workload.name, ReasonName(kernel.reason),
                    kernel.record ? absl::StrCat(*kernel.record) : "-",
                    kernel.expected_seconds ? FormatSeconds(*kernel.expected_seconds) : "-", row.why});
  }
  return FormatTable(rows, {2, 3}, [](size_t column, const std::string& cell) {
    return column == kReasonColumn ? PaintedReason(cell) : cell;
  });
}

// The source's warnings come first. The compiler's lines about slow kernels follow.
std::vector<std::string> WarningsOf(const Kernels& kernels, const BuildReport& report) {
  std::vector<std::string> warnings = kernels.warnings;
  for (const absl::string_view line : absl::StrSplit(report.log, '\n', absl::SkipEmpty()))
    warnings.emplace_back(line);
  return warnings;
}

using Json = nlohmann::ordered_json;

Json KernelJson(const LibrarySpec& spec, const Found& found) {
  const KernelSpec& kernel = found.kernel;
  Json json = {{"name", KernelSymbol(spec, kernel)},
               {"workload_name", kernel.workload.name},
               {"workload_hash", WorkloadHash(kernel.workload)},
               {"reason", ReasonName(kernel.reason)},
               {"record", nullptr},
               {"expected_seconds", nullptr},
               {"predicted_seconds", nullptr},
               {"why", found.why}};
  if (kernel.record) json["record"] = *kernel.record;
  if (kernel.expected_seconds) json["expected_seconds"] = *kernel.expected_seconds;
  if (kernel.predicted_seconds) json["predicted_seconds"] = *kernel.predicted_seconds;
  return json;
}

// The result of the command for programs: one object on one line.
class Summary {
 public:
  Summary(const LibrarySpec& spec, const std::vector<Found>& found) {
    Json functions = Json::array();
    for (const Found& row : found) functions.push_back(KernelJson(spec, row));
    json_ = {{"module", spec.module},
             {"target", PrintTarget(spec.target)},
             {"functions", functions},
             {"files", Json::array()},
             {"warnings", Json::array()}};
  }
  void AddGroupings(const std::vector<ChosenGrouping>& groupings) {
    json_["groupings"] = Json::array();
    for (const ChosenGrouping& grouping : groupings) {
      Json row = {{"name", grouping.name},
                  {"instead_of", grouping.instead_of},
                  {"functions", grouping.parts},
                  {"expected_seconds", nullptr},
                  {"default_expected_seconds", nullptr}};
      if (grouping.seconds) row["expected_seconds"] = *grouping.seconds;
      if (grouping.default_seconds) row["default_expected_seconds"] = *grouping.default_seconds;
      json_["groupings"].push_back(std::move(row));
    }
  }
  void AddResult(const LibrarySpec& spec, const std::string& dir, const std::vector<std::string>& warnings) {
    for (const std::string& file :
         {spec.module + ".so", spec.module + ".h", spec.module + ".json", std::string("dlpack.h")})
      json_["files"].push_back((std::filesystem::path(dir) / file).string());
    json_["warnings"] = warnings;
  }
  void AddDeviations(const std::vector<Deviation>& deviations) {
    json_["deviations"] = Json::array();
    for (const Deviation& deviation : deviations) {
      json_["deviations"].push_back({{"output", deviation.output},
                                     {"largest_magnitude", deviation.largest_magnitude},
                                     {"max_abs_error", deviation.max_abs_error},
                                     {"max_rel_error", deviation.max_rel_error()},
                                     {"not_finite", deviation.not_finite}});
    }
  }
  std::string Text() const { return json_.dump() + "\n"; }

 private:
  Json json_;
};

absl::Status CheckStrict(const std::vector<Found>& found) {
  std::string others;
  for (const Found& row : found) {
    if (row.kernel.reason == Reason::kHit) continue;
    absl::StrAppend(&others, others.empty() ? "" : ", ", row.kernel.workload.name, " (",
                    ReasonName(row.kernel.reason), ")");
  }
  if (others.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--strict: expected a hit for every kernel, but not for ", others));
}

absl::Status CreateFolder(const std::string& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (!error) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("cannot make the folder `", dir, "`: ", error.message()));
}

// The lock file under its temporary name, if one is asked for. It is written before the library, so that a
// file that cannot be written leaves no library behind.
absl::StatusOr<std::optional<OutputFile>> WriteLock(const CompileOptions& options, const Kernels& kernels) {
  std::optional<OutputFile> file;
  if (options.write_lock.empty()) return file;
  MYCC_ASSIGN_OR_RETURN(const LockFile lock,
                        LockOf(options.source.model, kernels.target, kernels.found,
                               kernels.program ? &*kernels.program : nullptr, kernels.groupings));
  MYCC_ASSIGN_OR_RETURN(OutputFile opened, OutputFile::Open(options.write_lock));
  file.emplace(std::move(opened));
  file->stream() << PrintLock(lock);
  MYCC_RETURN_IF_ERROR(file->Close());
  return file;
}

absl::StatusOr<BuildReport> Build(LibrarySpec* spec, std::optional<ModelProgram> program,
                                  const CompileOptions& options) {
  const std::string& dir = options.output_dir;
  if (!program) return BuildLibrary(*spec, dir);
  return BuildProgramLibrary(
      {spec->module, spec->target, *std::move(program), std::move(spec->kernels), options.profile}, dir);
}

}  // namespace

absl::Status CompileCommand(const CompileOptions& options, std::ostream& out) {
  const std::string module = options.module.empty() ? ModuleOf(options.source.model.file) : options.module;
  MYCC_RETURN_IF_ERROR(CheckModule(module));
  if (options.profile && !IsModel(options.source.model.file))
    return Misuse("--profile is for models (.onnx)");
  MYCC_ASSIGN_OR_RETURN(Kernels kernels, ResolveKernels(options.source));
  const bool is_checked = options.check_random || !options.check.empty();
  if (is_checked) MYCC_RETURN_IF_ERROR(CanCompare(kernels, options.check));
  LibrarySpec spec{module, kernels.target, {}};
  Summary summary(spec, kernels.found);
  if (kernels.program) summary.AddGroupings(kernels.groupings);
  const std::string table = options.quiet     ? ""
                            : kernels.program ? ModelTable(*kernels.program, kernels.found, kernels.groupings)
                                              : ReasonTable(kernels.found);
  if (options.strict) {
    if (absl::Status strict = CheckStrict(kernels.found); !strict.ok()) {
      out << (options.json ? summary.Text() : table);
      return strict;
    }
  }
  MYCC_RETURN_IF_ERROR(CreateFolder(options.output_dir));
  MYCC_ASSIGN_OR_RETURN(std::optional<OutputFile> lock, WriteLock(options, kernels));
  for (Found& found : kernels.found) spec.kernels.push_back(std::move(found.kernel));
  MYCC_ASSIGN_OR_RETURN(const BuildReport report, Build(&spec, std::move(kernels.program), options));
  if (lock) MYCC_RETURN_IF_ERROR(lock->Commit());
  const std::vector<std::string> warnings = WarningsOf(kernels, report);
  std::vector<Deviation> deviations;
  if (is_checked) {
    const std::string library = absl::StrCat(options.output_dir, "/", module, ".so");
    MYCC_ASSIGN_OR_RETURN(deviations, CompareWithF32(library, options.source, kernels.target, options.check));
    summary.AddDeviations(deviations);
  }
  if (options.json) {
    summary.AddResult(spec, options.output_dir, warnings);
    out << summary.Text();
    return absl::OkStatus();
  }
  out << table;
  if (is_checked) out << DeviationTable(deviations);
  for (const std::string& warning : warnings) std::cerr << WarningLine("mycc", warning);
  return absl::OkStatus();
}

}  // namespace mycc
