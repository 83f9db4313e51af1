#include "codegen/graph/library_kernels.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "codegen/runtime/artifact/library_kernels.h"

namespace mycc {
namespace {

static_assert(static_cast<int>(DType::kF64) == kMyccF64 && static_cast<int>(DType::kF32) == kMyccF32 &&
              static_cast<int>(DType::kF16) == kMyccF16 && static_cast<int>(DType::kBF16) == kMyccBF16 &&
              static_cast<int>(DType::kI64) == kMyccI64 && static_cast<int>(DType::kI32) == kMyccI32 &&
              static_cast<int>(DType::kI8) == kMyccI8 && static_cast<int>(DType::kU8) == kMyccU8 &&
              static_cast<int>(DType::kBool) == kMyccBool &&
              static_cast<int>(DType::kF8E4M3) == kMyccF8E4M3 &&
              static_cast<int>(DType::kF8E5M2) == kMyccF8E5M2 && static_cast<int>(DType::kI16) == kMyccI16 &&
              static_cast<int>(DType::kU16) == kMyccU16 && static_cast<int>(DType::kU32) == kMyccU32 &&
              static_cast<int>(DType::kU64) == kMyccU64);

struct LibraryKernel {
  const char* function;
  const char* symbol;
  MyccLibraryKernel* run;
  MyccWorkspaceFunction* workspace_bytes;  // null: none
  bool makes_texts = false;
  bool parallel = false;
};

constexpr LibraryKernel kKernels[] = {
    {"compress", "MyccCompress", MyccCompress, nullptr},
    {"concat_texts", "MyccConcatTexts", MyccConcatTexts, nullptr, true},
    {"copy", "MyccCopy", MyccCopy, nullptr},
    {"det", "MyccDet", MyccDet, MyccDetWorkspace},
    {"dft", "MyccDft", MyccDft, MyccDftWorkspace},
    {"equal_texts", "MyccEqualTexts", MyccEqualTexts, nullptr},
    {"find_texts", "MyccFindTexts", MyccFindTexts, nullptr},
    {"non_max_suppression", "MyccNonMaxSuppression", MyccNonMaxSuppression, MyccNonMaxSuppressionWorkspace},
    {"non_zero", "MyccNonZero", MyccNonZero, nullptr},
    {"normalize_texts", "MyccNormalizeTexts", MyccNormalizeTexts, nullptr, true},
    {"print_numbers", "MyccPrintNumbers", MyccPrintNumbers, nullptr, true},
    {"read_numbers", "MyccReadNumbers", MyccReadNumbers, nullptr},
    {"recurrent", "MyccRecurrent", MyccRecurrent, MyccRecurrentWorkspace, false, true},
    {"scatter_elements", "MyccScatterElements", MyccScatterElements, nullptr},
    {"scatter_nd", "MyccScatterND", MyccScatterND, nullptr},
    {"split_texts", "MyccSplitTexts", MyccSplitTexts, nullptr, true},
    {"texts", "MyccTexts", MyccTexts, nullptr, true},
    {"top_k", "MyccTopK", MyccTopK, MyccTopKWorkspace},
    {"unique", "MyccUnique", MyccUnique, MyccUniqueWorkspace},
};

const LibraryKernel* Find(const std::string& function) {
  const auto* at = std::find_if(std::begin(kKernels), std::end(kKernels),
                                [&](const LibraryKernel& kernel) { return function == kernel.function; });
  return at == std::end(kKernels) ? nullptr : at;
}

MyccTensor Describe(DType dtype, const std::vector<int64_t>& shape, void* data) {
  return {data, static_cast<int64_t>(dtype), DTypeBytes(dtype), static_cast<int64_t>(shape.size()),
          shape.data()};
}

}  // namespace

std::string LibraryKernelSymbol(const std::string& function) {
  const LibraryKernel* kernel = Find(function);
  return kernel == nullptr ? "" : kernel->symbol;
}

bool MakesTexts(const std::string& function) {
  const LibraryKernel* kernel = Find(function);
  return kernel != nullptr && kernel->makes_texts;
}

bool RunsInParallel(const std::string& function) {
  const LibraryKernel* kernel = Find(function);
  return kernel != nullptr && kernel->parallel;
}

int64_t LibraryWorkspaceBytes(const LibraryCall& call, const std::vector<Buffer>& outputs) {
  const LibraryKernel* kernel = Find(call.function);
  if (kernel == nullptr || kernel->workspace_bytes == nullptr) return 0;
  std::vector<MyccTensor> tensors;
  for (const Buffer& input : call.inputs) tensors.push_back(Describe(input->dtype, input->shape, nullptr));
  for (const Buffer& output : outputs) tensors.push_back(Describe(output->dtype, output->shape, nullptr));
  return kernel->workspace_bytes(call.attributes.data(), tensors.data());
}

absl::StatusOr<std::vector<NDArray>> RunLibraryCall(const LibraryCall& call,
                                                    const std::vector<Buffer>& outputs,
                                                    const std::vector<const NDArray*>& inputs) {
  const LibraryKernel* kernel = Find(call.function);
  if (kernel == nullptr)
    return absl::InternalError(absl::StrCat("no library kernel is called `", call.function, "`"));
  std::vector<NDArray> results;
  results.reserve(outputs.size());
  for (const Buffer& output : outputs) results.push_back(NDArray::Zeros(output->dtype, output->shape));
  std::vector<MyccTensor> tensors;
  tensors.reserve(inputs.size() + outputs.size());
  for (const NDArray* input : inputs)
    tensors.push_back(Describe(input->dtype, input->shape, const_cast<uint8_t*>(input->bytes.data())));
  for (NDArray& result : results)
    tensors.push_back(Describe(result.dtype, result.shape, result.bytes.data()));
  std::vector<uint64_t> workspace(LibraryWorkspaceBytes(call, outputs) / 8 + 1);
  kernel->run(call.attributes.data(), tensors.data(), reinterpret_cast<uint8_t*>(workspace.data()));
  if (const char* problem = MyccTakeProblem())
    return absl::InvalidArgumentError(absl::StrCat(call.function, ": ", problem));
  return results;
}

}  // namespace mycc
