#include "codegen/program/gpu_check.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace mycc {
namespace {

// Texts and shapes are in the memory of the host.
absl::Status CheckTensors(const std::string& kind, const std::vector<NamedTensor>& tensors) {
  for (const NamedTensor& tensor : tensors) {
    if (!tensor.is_text && tensor.bounded.empty()) continue;
    return absl::UnimplementedError(absl::StrCat(
        kind, " `", tensor.name,
        "`: ", tensor.is_text ? "elements of type STRING are" : "a size that is known after the call is",
        " not supported on a GPU; expected a CPU target"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckForGpu(const ModelProgram& program) {
  MYCC_RETURN_IF_ERROR(CheckTensors("input", program.inputs));
  MYCC_RETURN_IF_ERROR(CheckTensors("output", program.outputs));
  for (const KernelLaunch& launch : program.launches) {
    if (launch.kernel >= 0) continue;
    return absl::UnimplementedError(absl::StrCat(
        "node `", absl::StrJoin(launch.origins, "`, `"), "`: its operator is the library kernel `",
        launch.call.function, "`, which has no version for GPUs; expected a CPU target"));
  }
  return absl::OkStatus();
}

}  // namespace mycc
