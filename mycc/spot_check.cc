#include "mycc/spot_check.h"

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "codegen/artifact/library.h"
#include "codegen/runtime/arguments.h"
#include "codegen/runtime/cuda_target.h"
#include "codegen/runtime/library.h"
#include "codegen/workload/arg_reduction.h"
#include "codegen/workload/permitted.h"
#include "codegen/workload/sampled_values.h"
#include "codegen/workload/tolerance.h"

namespace mycc {
namespace {

constexpr uint64_t kSeed = 20;
// The most elements of each output that are checked.
constexpr int64_t kElements = 256;
constexpr double kSeconds = 5, kSpecialSeconds = 0.5;

// The text of the first element that differs, or nothing.
std::string FirstDifference(const Workload& workload, const std::vector<NDArray>& inputs,
                            Arguments* arguments) {
  SampledReference reference(workload, StoredElements(inputs));
  std::vector<const uint8_t*> pointers;
  for (const NDArray& input : inputs) pointers.push_back(input.bytes.data());
  for (size_t o = 0; o < workload.outputs.size(); ++o) {
    const SampledValues sampled =
        SampleOutput(workload, &reference, static_cast<int>(o), kElements, kSeconds, kSeed);
    const uint8_t* got = arguments->tensor(static_cast<int>(workload.inputs.size() + o)).data();
    ArgReduction judge(workload, workload.outputs[o], pointers);
    const Comparison comparison = Compare(sampled.expected(), got, ToleranceOf(workload), judge.excuse());
    if (!comparison.passed) return absl::StrCat(workload.outputs[o]->name, ": ", comparison.first_mismatch);
  }
  return "";
}

// The same of the outputs on inputs with special values.
std::string FirstForbiddenOutput(const Workload& workload, const std::vector<NDArray>& inputs,
                                 Arguments* arguments) {
  PermittedReference reference(workload, StoredElements(inputs));
  for (size_t o = 0; o < workload.outputs.size(); ++o) {
    const PermittedValues permitted =
        PermitOutput(workload, &reference, static_cast<int>(o), kElements, kSpecialSeconds, kSeed);
    const std::string forbidden =
        FirstForbidden(permitted, arguments->tensor(static_cast<int>(workload.inputs.size() + o)).data());
    if (!forbidden.empty()) return absl::StrCat(workload.outputs[o]->name, ": ", forbidden);
  }
  return "";
}

// Calls on these inputs; outputs begin as what no kernel computes.
absl::Status CallOn(const std::vector<NDArray>& inputs, Arguments* arguments) {
  for (int i = 0; i < arguments->size(); ++i) {
    HostTensor& tensor = arguments->tensor(i);
    if (i < static_cast<int>(inputs.size())) {
      std::memcpy(tensor.data(), inputs[i].bytes.data(), tensor.bytes());
    } else {
      std::memset(tensor.data(), 0xff, tensor.bytes());
    }
  }
  MYCC_RETURN_IF_ERROR(arguments->Pack());
  return arguments->Call();
}

absl::StatusOr<std::string> RunAndCompare(const KernelSpec& kernel, const Target& target, int device) {
  MYCC_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  const std::string path = folder.path() + "/check.so";
  MYCC_RETURN_IF_ERROR(BuildSharedObject({"check", target, {kernel}}, path).status());
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<Library> library, Library::Open(path, device));
  MYCC_ASSIGN_OR_RETURN(Arguments arguments, Arguments::Create(library.get(), kernel.workload.name));
  const std::vector<NDArray> inputs = RandomInputs(kernel.workload, kSeed);
  MYCC_RETURN_IF_ERROR(CallOn(inputs, &arguments));
  const std::string difference = FirstDifference(kernel.workload, inputs, &arguments);
  if (!difference.empty()) return difference;
  const std::vector<NDArray> special = SpecialInputs(kernel.workload, kSeed);
  MYCC_RETURN_IF_ERROR(CallOn(special, &arguments));
  return FirstForbiddenOutput(kernel.workload, special, &arguments);
}

}  // namespace

absl::StatusOr<int> FindDevice(const Target& target) {
  std::string why;
  if (target.kind == TargetKind::kCpu) {
    if (IsCompatible(target, DetectHostTarget(), &why)) return 0;
    return absl::NotFoundError(why);
  }
  MYCC_ASSIGN_OR_RETURN(const int count, CountCudaDevices());
  for (int device = 0; device < count; ++device) {
    MYCC_ASSIGN_OR_RETURN(const Target machine, DetectCudaTarget(device));
    if (IsCompatible(target, machine, &why)) return device;
  }
  return absl::NotFoundError(why.empty() ? "no CUDA device" : why);
}

SpotCheck CheckOnRandomInputs(const KernelSpec& kernel, const Target& target) {
  const absl::StatusOr<int> device = FindDevice(target);
  if (!device.ok())
    return {SpotCheck::kUnchecked, absl::StrCat("unverified: ", std::string(device.status().message()))};
  const absl::StatusOr<std::string> difference = RunAndCompare(kernel, target, *device);
  if (!difference.ok()) return {SpotCheck::kWrong, std::string(difference.status().message())};
  if (!difference->empty()) return {SpotCheck::kWrong, *difference};
  return {SpotCheck::kRight, "checked on random inputs"};
}

}  // namespace mycc
