#include "worker/trial_library.h"

#include <dlfcn.h>

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

// Why the system does not load the file, when nothing of it is run; empty: it does.
std::string WhyNotLoaded(const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return dlerror();
  dlclose(handle);
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<Library>> OpenTrial(const std::string& path, const Workload& workload) {
  absl::StatusOr<std::unique_ptr<Library>> opened = Library::Open(path);
  if (!opened.ok()) {
    const std::string refused = WhyNotLoaded(path);
    if (refused.empty()) return absl::InternalError(opened.status().message());
    return absl::FailedPreconditionError(
        absl::StrCat("this host does not load what was just built: ", refused,
                     "; expected TMPDIR and XDG_CACHE_HOME on file systems without `noexec`"));
  }
  std::unique_ptr<Library> library = *std::move(opened);
  if (library->functions().size() != 1)
    return absl::InternalError(absl::StrCat(path, " holds not one function"));
  MYCC_RETURN_IF_ERROR(CheckSignature(library->functions()[0], workload));
  return library;
}

}  // namespace mycc
