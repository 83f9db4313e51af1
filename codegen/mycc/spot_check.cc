#include "codegen/mycc/spot_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "codegen/runtime/arguments.h"
#include "codegen/runtime/library.h"
#include "codegen/workload/reference.h"

namespace mycc {
namespace {

constexpr uint64_t kSeed = 20;
constexpr int64_t kElements = 256;  // of each output, at most

double Epsilon(DType dtype) {
  switch (dtype) {
    case DType::kF64: return 0x1p-52;
    case DType::kF32: return 0x1p-23;
    case DType::kF16: return 0x1p-10;
    case DType::kBF16: return 0x1p-7;
    default: return 0;
  }
}

// The rounding errors of as many operations as lead to one element, in the coarsest type on the way.
double Tolerance(const Workload& workload) {
  double epsilon = 0, operations = 8;
  for (const Stage& stage : workload.stages) {
    epsilon = std::max({epsilon, Epsilon(stage.output->dtype), Epsilon(stage.value->dtype)});
    double length = 1;
    for (const Var& axis : stage.reduce_axes) length *= static_cast<double>(axis->extent);
    operations += 8 + length;
  }
  return epsilon * operations;
}

bool Agrees(DType dtype, Scalar got, Scalar want, double tolerance) {
  if (!IsFloat(dtype)) return got.i == want.i;
  if (std::isnan(want.f)) return std::isnan(got.f);
  if (std::isinf(want.f)) return got.f == want.f;
  return std::abs(got.f - want.f) <= tolerance * std::max(1.0, std::abs(want.f));
}

// The text of the first element that differs, or nothing.
std::string FirstDifference(const Workload& workload, const std::vector<NDArray>& inputs,
                            Arguments* arguments) {
  SampledReference reference(workload, inputs);
  const double tolerance = Tolerance(workload);
  for (size_t o = 0; o < workload.outputs.size(); ++o) {
    const HostTensor& tensor = arguments->tensor(static_cast<int>(workload.inputs.size() + o));
    const int64_t count = tensor.num_elements(), samples = std::min(count, kElements);
    for (int64_t s = 0; s < samples; ++s) {
      // Spread evenly, the first and the last element among them.
      const int64_t flat =
          samples < 2 ? 0
                      : static_cast<int64_t>(static_cast<double>(s) * static_cast<double>(count - 1) /
                                             static_cast<double>(samples - 1));
      const Scalar got = LoadScalar(tensor.dtype(), tensor.data() + flat * DTypeBytes(tensor.dtype()));
      const Scalar want = reference.Output(static_cast<int>(o), flat);
      if (Agrees(tensor.dtype(), got, want, tolerance)) continue;
      const bool is_float = IsFloat(tensor.dtype());
      return absl::StrCat(workload.outputs[o]->name, " at ", flat, " is ",
                          is_float ? got.f : static_cast<double>(got.i), ", expected ",
                          is_float ? want.f : static_cast<double>(want.i));
    }
  }
  return "";
}

absl::StatusOr<std::string> RunAndCompare(const KernelSpec& kernel, const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  const std::string path = folder.path() + "/check.so";
  MYCC_RETURN_IF_ERROR(BuildSharedObject({"check", target, {kernel}}, path));
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<Library> library, Library::Open(path));
  MYCC_ASSIGN_OR_RETURN(Arguments arguments, Arguments::Create(library.get(), kernel.workload.name));
  const std::vector<NDArray> inputs = RandomInputs(kernel.workload, kSeed);
  for (int i = 0; i < arguments.size(); ++i) {
    HostTensor& tensor = arguments.tensor(i);
    // Outputs begin as what no kernel computes.
    if (i < static_cast<int>(inputs.size())) {
      std::memcpy(tensor.data(), inputs[i].bytes.data(), tensor.bytes());
    } else {
      std::memset(tensor.data(), 0xff, tensor.bytes());
    }
  }
  MYCC_RETURN_IF_ERROR(arguments.Pack());
  MYCC_RETURN_IF_ERROR(arguments.Call());
  return FirstDifference(kernel.workload, inputs, &arguments);
}

}  // namespace

SpotCheck CheckOnRandomInputs(const KernelSpec& kernel, const Target& target) {
  std::string missing;
  if (!IsCompatible(target, DetectHostTarget(), &missing))
    return {SpotCheck::kUnchecked, absl::StrCat("unverified: ", missing)};
  const absl::StatusOr<std::string> difference = RunAndCompare(kernel, target);
  if (!difference.ok()) return {SpotCheck::kWrong, std::string(difference.status().message())};
  if (!difference->empty()) return {SpotCheck::kWrong, *difference};
  return {SpotCheck::kRight, "checked on random inputs"};
}

}  // namespace mycc
