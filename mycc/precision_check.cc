#include "mycc/precision_check.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "codegen/artifact/program_library.h"
#include "codegen/runtime/library.h"
#include "command/table.h"
#include "mycc/input_files.h"
#include "mycc/library_workload.h"
#include "mycc/spot_check.h"

namespace mycc {
namespace {

constexpr const char* kModule = "f32";
constexpr uint64_t kInputsSeed = 0;  // the same as in `mycc run`

// Writes the library of the model without mixed precision, and returns its file.
absl::StatusOr<std::string> BuildF32(const std::string& folder, const KernelSource& source,
                                     const Target& target) {
  KernelSource plain;
  plain.model = source.model;
  plain.model.dtype.clear();
  plain.target = PrintTarget(target);
  MYCC_ASSIGN_OR_RETURN(Kernels kernels, ResolveKernels(plain));
  ProgramSpec spec{kModule, kernels.target, *std::move(kernels.program), {}, /*profile=*/false};
  for (Found& found : kernels.found) spec.kernels.push_back(std::move(found.kernel));
  MYCC_RETURN_IF_ERROR(BuildProgramLibrary(std::move(spec), folder).status());
  return absl::StrCat(folder, "/", kModule, ".so");
}

// The only function's arguments, after a call.
absl::StatusOr<Arguments> CallOnInputs(Library* library, const std::vector<std::string>& inputs) {
  const std::string function = library->functions()[0].name;
  MYCC_ASSIGN_OR_RETURN(Arguments arguments, Arguments::Create(library, function));
  MYCC_ASSIGN_OR_RETURN(const FunctionOrigin origin, OriginOf(*library, function));
  FillRandom(origin.workload, kInputsSeed, &arguments);
  MYCC_RETURN_IF_ERROR(LoadInputs("--check", inputs, &arguments));
  MYCC_RETURN_IF_ERROR(arguments.Pack());
  MYCC_RETURN_IF_ERROR(arguments.Call());
  return arguments;
}

absl::StatusOr<int> FindDeviceForCheck(const Target& target) {
  absl::StatusOr<int> device = FindDevice(target);
  if (device.ok()) return device;
  return absl::FailedPreconditionError(absl::StrCat("--check: this machine cannot run code for `",
                                                    PrintTarget(target),
                                                    "`: ", std::string(device.status().message())));
}

double ValueAt(const HostTensor& tensor, int64_t i) {
  const Scalar scalar = LoadScalar(tensor.dtype(), tensor.data() + i * DTypeBytes(tensor.dtype()));
  return IsFloat(tensor.dtype()) ? scalar.f : static_cast<double>(scalar.i);
}

}  // namespace

Deviation DeviationOf(const std::string& output, const HostTensor& tensor, const HostTensor& expected) {
  Deviation deviation{output};
  if (tensor.is_text()) return deviation;
  for (int64_t i = 0; i < std::min(tensor.num_elements(), expected.num_elements()); ++i) {
    const double got = ValueAt(tensor, i), want = ValueAt(expected, i);
    if (std::isfinite(want))
      deviation.largest_magnitude = std::max(deviation.largest_magnitude, std::abs(want));
    if (std::isfinite(want) && std::isfinite(got)) {
      deviation.max_abs_error = std::max(deviation.max_abs_error, std::abs(got - want));
    } else if (got != want && !(std::isnan(got) && std::isnan(want))) {
      ++deviation.not_finite;
    }
  }
  return deviation;
}

absl::Status CanCompare(const Kernels& kernels, const std::vector<std::string>& inputs) {
  std::vector<std::string> names;
  for (const NamedTensor& input : kernels.program->inputs) names.push_back(input.name);
  for (const std::string& input : inputs)
    MYCC_RETURN_IF_ERROR(ParseInput("--check", input, names, kernels.program->name).status());
  return FindDeviceForCheck(kernels.target).status();
}

absl::StatusOr<std::vector<Deviation>> CompareWithF32(const std::string& library, const KernelSource& source,
                                                      const Target& target,
                                                      const std::vector<std::string>& inputs) {
  MYCC_ASSIGN_OR_RETURN(const int device, FindDeviceForCheck(target));
  MYCC_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  MYCC_ASSIGN_OR_RETURN(const std::string f32_file, BuildF32(folder.path(), source, target));
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<Library> mixed, Library::Open(library, device));
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<Library> f32, Library::Open(f32_file, device));
  MYCC_ASSIGN_OR_RETURN(Arguments arguments, CallOnInputs(mixed.get(), inputs));
  MYCC_ASSIGN_OR_RETURN(Arguments expected, CallOnInputs(f32.get(), inputs));
  std::vector<Deviation> deviations;
  for (int i = 0; i < arguments.size(); ++i) {
    if (arguments.arg(i).kind == "output")
      deviations.push_back(DeviationOf(arguments.arg(i).name, arguments.tensor(i), expected.tensor(i)));
  }
  return deviations;
}

std::string DeviationTable(const std::vector<Deviation>& deviations) {
  std::vector<std::vector<std::string>> rows = {
      {"output", "largest in f32", "largest deviation", "relative to the largest", "no longer finite"}};
  for (const Deviation& deviation : deviations) {
    rows.push_back({deviation.output, absl::StrFormat("%.4g", deviation.largest_magnitude),
                    absl::StrFormat("%.3g", deviation.max_abs_error),
                    absl::StrFormat("%.3g", deviation.max_rel_error()), absl::StrCat(deviation.not_finite)});
  }
  return FormatTable(rows, {1, 2, 3, 4});
}

}  // namespace mycc
