// `mycc compile`: finds a schedule for each workload, writes the library, and prints where each came from.
#include <algorithm>
#include <filesystem>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "codegen/artifact/library.h"
#include "command/misuse.h"
#include "command/table.h"
#include "command/times.h"
#include "mycc/commands.h"

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
  if (!module.empty() && !digit_first && std::all_of(module.begin(), module.end(), IsWordCharacter))
    return absl::OkStatus();
  return Misuse(absl::StrCat("--name: `", module, "` is no C identifier; expected letters, digits and _"));
}

std::string ReasonTable(const std::vector<Found>& found) {
  std::vector<std::vector<std::string>> rows = {{"function", "reason", "record", "expected", "why"}};
  for (const Found& row : found) {
    const KernelSpec& kernel = row.kernel;
    rows.push_back({kernel.workload.name, ReasonName(kernel.reason),
                    kernel.record ? absl::StrCat(*kernel.record) : "-",
                    kernel.expected_seconds ? FormatSeconds(*kernel.expected_seconds) : "-", row.why});
  }
  return FormatTable(rows, {2, 3});
}

// The compiler's remarks about slow kernels, a line each.
std::string Notes(const BuildReport& report) {
  std::string notes;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(report.log, '\n', absl::SkipEmpty())))
    absl::StrAppend(&notes, "note: ", line, "\n");
  return notes;
}

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

}  // namespace

absl::Status CompileCommand(const CompileOptions& options, std::ostream& out) {
  const std::string module = options.module.empty() ? ModuleOf(options.source.file) : options.module;
  MYCC_RETURN_IF_ERROR(CheckModule(module));
  MYCC_ASSIGN_OR_RETURN(Kernels kernels, ResolveKernels(options.source));
  LibrarySpec spec{
      options.module.empty() ? ModuleOf(options.source.file) : options.module, kernels.target, {}};
  const std::string table = ReasonTable(kernels.found);
  if (options.strict) {
    if (absl::Status strict = CheckStrict(kernels.found); !strict.ok()) {
      out << table;
      return strict;
    }
  }
  for (Found& found : kernels.found) spec.kernels.push_back(std::move(found.kernel));
  MYCC_RETURN_IF_ERROR(CreateFolder(options.output_dir));
  MYCC_ASSIGN_OR_RETURN(const BuildReport report, BuildLibrary(spec, options.output_dir));
  out << table << Notes(report);
  return absl::OkStatus();
}

}  // namespace mycc
