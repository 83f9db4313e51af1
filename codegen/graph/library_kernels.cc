#include "codegen/graph/library_kernels.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "codegen/runtime/artifact/library_kernels.h"

namespace mycc {
namespace {

struct LibraryKernel {
  const char* function;
  const char* symbol;
  MyccLibraryKernel* run;
  int64_t (*workspace_bytes)(const int64_t* attributes, const struct MyccTensor* tensors);  // null: none
};

constexpr LibraryKernel kKernels[] = {
    {"copy", "MyccCopy", MyccCopy, nullptr},
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
  for (const Buffer& output : outputs) results.push_back(NDArray::Zeros(output->dtype, output->shape));
  std::vector<MyccTensor> tensors;
  for (const NDArray* input : inputs)
    tensors.push_back(Describe(input->dtype, input->shape, const_cast<uint8_t*>(input->bytes.data())));
  for (NDArray& result : results)
    tensors.push_back(Describe(result.dtype, result.shape, result.bytes.data()));
  std::vector<uint64_t> workspace(LibraryWorkspaceBytes(call, outputs) / 8 + 1);
  kernel->run(call.attributes.data(), tensors.data(), reinterpret_cast<uint8_t*>(workspace.data()));
  return results;
}

}  // namespace mycc
