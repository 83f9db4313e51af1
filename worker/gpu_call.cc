#include "worker/gpu_call.h"

#include <utility>

#include "base/status.h"
#include "codegen/runtime/arguments.h"
#include "worker/trial_library.h"

namespace mycc {
namespace {

std::unique_ptr<DLTensor> View(CuAddress address, DType dtype, const std::vector<int64_t>& shape) {
  return std::make_unique<DLTensor>(DLTensor{reinterpret_cast<void*>(address),
                                             {kDLCUDA, 0},
                                             static_cast<int>(shape.size()),
                                             DLPackType(dtype),
                                             const_cast<int64_t*>(shape.data()),
                                             nullptr,
                                             0});
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuCall>> GpuCall::Load(GpuContext* device, const std::string& path,
                                                       const Workload& workload,
                                                       const std::vector<CuAddress>& arguments) {
  MYCC_ASSIGN_OR_RETURN(std::unique_ptr<Library> library, OpenTrial(path, workload));
  std::unique_ptr<GpuCall> call(new GpuCall(device, std::move(library)));
  const ArtifactFunction& function = call->library_->functions()[0];
  const size_t num_inputs = workload.inputs.size();
  std::vector<DLTensor*> packed;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Buffer& tensor = i < num_inputs ? workload.inputs[i].tensor : workload.outputs[i - num_inputs];
    call->tensors_.push_back(View(arguments[i], tensor->dtype, function.args[i].shape));
    DLTensor* passed = call->tensors_.back().get();
    if (function.args[i].kind == "const") {
      call->pack_args_.push_back(passed);
      const int64_t bytes = function.args[i].packed_bytes;
      MYCC_ASSIGN_OR_RETURN(CudaBuffer memory, device->Allocate(bytes));
      call->packed_shapes_.push_back(std::make_unique<std::vector<int64_t>>(1, bytes));
      call->tensors_.push_back(View(memory.address(), DType::kU8, *call->packed_shapes_.back()));
      call->packed_.push_back(std::move(memory));
      passed = call->tensors_.back().get();
      packed.push_back(passed);
    }
    call->call_args_.push_back(passed);
  }
  call->pack_args_.insert(call->pack_args_.end(), packed.begin(), packed.end());
  MYCC_RETURN_IF_ERROR(call->Pack());
  return call;
}

absl::Status GpuCall::Pack() {
  if (packed_.empty()) return absl::OkStatus();
  MYCC_RETURN_IF_ERROR(library_->Pack(library_->functions()[0].name, pack_args_, device_->stream()));
  return device_->Wait();
}

absl::Status GpuCall::Enqueue() {
  return library_->Call(library_->functions()[0].name, call_args_, device_->stream());
}

}  // namespace mycc
