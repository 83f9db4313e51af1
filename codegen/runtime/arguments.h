// Allocates the tensors for calls of an artifact's function, for programs that fill the inputs, call, and
// read the outputs (run, bench, tests). For a GPU's function, tensors are copied between host and device.
// Thread rule: thread-compatible; with a GPU, used only by the thread that created them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/expr/dtype.h"
#include "codegen/runtime/cuda_session.h"
#include "codegen/runtime/library.h"
#include "codegen/runtime/placement.h"

namespace mycc {

// The DLPack type of the artifact ABI.
DLDataType DLPackType(DType dtype);

// A zeroed dense tensor, 64-byte aligned, with its DLPack view. Moving the tensor changes the view's address.
class HostTensor {
 public:
  // ResourceExhausted when there is no memory. A tensor of texts has type u64; its texts are empty at first.
  static absl::StatusOr<HostTensor> Create(DType dtype, std::vector<int64_t> shape, bool is_text = false,
                                           const MemoryPlace& place = {});

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }  // a call changes that of a bounded output
  void SetShape(const std::vector<int64_t>& shape) { std::ranges::copy(shape, shape_.begin()); }
  int64_t num_elements() const;
  int64_t bytes() const { return num_elements() * DTypeBytes(dtype_); }
  uint8_t* data() const { return data_; }
  DLTensor* view() { return &view_; }

  bool is_text() const { return view_.dtype.code == kDLOpaqueHandle; }
  std::vector<std::string> Texts() const;         // those of an output live until the next call
  void SetTexts(std::vector<std::string> texts);  // REQUIRES: one for each element

 private:
  struct Free {
    void operator()(uint8_t* data) const;
  };
  HostTensor(DType dtype, std::vector<int64_t> shape, bool is_text, uint8_t* memory, int64_t offset);

  DType dtype_;
  std::vector<int64_t> shape_;
  std::unique_ptr<uint8_t, Free> memory_;
  uint8_t* data_;                   // in it
  std::vector<std::string> texts_;  // that the elements point to
  DLTensor view_;
};

// A dense tensor in a GPU's memory, with its DLPack view. Moving the tensor changes the view's address.
class DeviceTensor {
 public:
  // A tensor like `tensor`, with unspecified contents.
  static absl::StatusOr<DeviceTensor> Create(CudaSession* session, HostTensor* tensor);

  const CudaBuffer& buffer() const { return buffer_; }
  DLTensor* view() { return &view_; }
  absl::Status CopyFrom(const HostTensor& tensor) { return buffer_.Write(tensor.data()); }
  absl::Status CopyTo(HostTensor* tensor) const { return buffer_.Read(tensor->data()); }

 private:
  DeviceTensor(CudaBuffer buffer, std::vector<int64_t> shape, const DLTensor& host, int device_id);

  CudaBuffer buffer_;
  std::vector<int64_t> shape_;
  DLTensor view_;
};

// The declared arguments, and for each const one the packed buffer that the function takes instead.
class Arguments {
 public:
  // `library` must outlive the arguments. `placement` is of the tensors in the host's memory. Errors:
  // NotFound, ResourceExhausted, those of the GPU's driver.
  static absl::StatusOr<Arguments> Create(Library* library, const std::string& function, int placement = 0);

  const ArtifactFunction& function() const { return *function_; }
  int size() const { return static_cast<int>(tensors_.size()); }
  const ArtifactArg& arg(int i) const { return function_->args[i]; }
  HostTensor& tensor(int i) { return *tensors_[i]; }

  // Packs the const inputs; call it again when they change. Does nothing without const inputs.
  absl::Status Pack();
  // Calls the function, and waits for the outputs.
  absl::Status Call();

  // Outputs whose shapes a call changes get their declared ones back: before each call.
  bool has_bounded() const { return !bounded_.empty(); }
  void ResetShapes();

  // The entry point's arguments, for timing loops; valid as long as this object. On a GPU these are the
  // device's copies, filled by Pack() and Upload(). `session` is null on a CPU.
  std::vector<DLTensor*>& call_args() { return call_args_; }
  CudaSession* session() { return session_.get(); }
  absl::Status Upload();
  absl::Status Download();

 private:
  Arguments(Library* library, const ArtifactFunction* function, int placement)
      : library_(library), function_(function), placement_(placement) {}

  // Adds a tensor, on a GPU with its copy, and returns the view that the function takes.
  absl::StatusOr<DLTensor*> AddTensor(DType dtype, const std::vector<int64_t>& shape, bool is_text,
                                      std::vector<std::unique_ptr<HostTensor>>* tensors,
                                      std::vector<std::unique_ptr<DeviceTensor>>* on_device);

  Library* library_;
  const ArtifactFunction* function_;
  int placement_, num_placed_ = 0;
  std::unique_ptr<CudaSession> session_;  // freed after the memory in it
  std::vector<std::unique_ptr<HostTensor>> tensors_;
  std::vector<std::unique_ptr<DeviceTensor>> on_device_;  // copies of tensors_; empty on a CPU
  std::vector<std::unique_ptr<HostTensor>> packed_;
  std::vector<std::unique_ptr<DeviceTensor>> packed_on_device_;
  std::vector<DLTensor*> call_args_, pack_args_;
  std::vector<int> bounded_;  // the numbers of these outputs
};

}  // namespace mycc
