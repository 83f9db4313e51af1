#include "worker/trial_library.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {
namespace {

const Buffer& TensorOf(const Workload& workload, int index) {
  const int num_inputs = static_cast<int>(workload.inputs.size());
  return index < num_inputs ? workload.inputs[index].tensor : workload.outputs[index - num_inputs];
}

// The library was compiled for this workload.
absl::Status CheckSignature(const ArtifactFunction& function, const Workload& workload) {
  const size_t expected = workload.inputs.size() + workload.outputs.size();
  bool same = function.args.size() == expected;
  for (size_t i = 0; same && i < expected; ++i) {
    const Buffer& tensor = TensorOf(workload, static_cast<int>(i));
    same = function.args[i].shape == tensor->shape && function.args[i].dtype == DTypeName(tensor->dtype);
  }
  if (same) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(function.name, " does not have the arguments of the workload ", workload.name));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Library>> OpenTrial(const std::string& path, const Workload& workload) {
  MYCC_ASSIGN_OR_RETURN(std::unique_ptr<Library> library, Library::Open(path));
  if (library->functions().size() != 1)
    return absl::InternalError(absl::StrCat(path, " holds not one function"));
  MYCC_RETURN_IF_ERROR(CheckSignature(library->functions()[0], workload));
  return library;
}

}  // namespace mycc
