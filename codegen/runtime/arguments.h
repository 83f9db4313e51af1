// The tensors of one call of an artifact's function, in memory of our own: for programs that fill the inputs,
// call, and read the outputs. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/expr/dtype.h"
#include "codegen/runtime/library.h"

namespace mycc {

// A zeroed dense tensor, 64-byte aligned, with its DLPack view. Movable; the view's address changes with it.
class HostTensor {
 public:
  // ResourceExhausted when there is no memory.
  static absl::StatusOr<HostTensor> Create(DType dtype, std::vector<int64_t> shape);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t num_elements() const;
  int64_t bytes() const { return num_elements() * DTypeBytes(dtype_); }
  uint8_t* data() const { return data_.get(); }
  DLTensor* view() { return &view_; }

 private:
  struct Free {
    void operator()(uint8_t* data) const;
  };
  HostTensor(DType dtype, std::vector<int64_t> shape, uint8_t* data);

  DType dtype_;
  std::vector<int64_t> shape_;
  std::unique_ptr<uint8_t, Free> data_;
  DLTensor view_;
};

// The arguments as declared, and beside each const one the packed buffer that the function takes in its
// place.
class Arguments {
 public:
  // `library` must outlive the arguments. Errors: NotFound, ResourceExhausted.
  static absl::StatusOr<Arguments> Create(Library* library, const std::string& function);

  const ArtifactFunction& function() const { return *function_; }
  int size() const { return static_cast<int>(tensors_.size()); }
  const ArtifactArg& arg(int i) const { return function_->args[i]; }
  HostTensor& tensor(int i) { return *tensors_[i]; }

  // Packs the const inputs; to be called again when they change. Nothing to do without any.
  absl::Status Pack();
  absl::Status Call();
  // What the entry point takes, for timing loops: valid as long as this object is.
  std::vector<DLTensor*>& call_args() { return call_args_; }

 private:
  Arguments(Library* library, const ArtifactFunction* function) : library_(library), function_(function) {}

  Library* library_;
  const ArtifactFunction* function_;
  std::vector<std::unique_ptr<HostTensor>> tensors_;
  std::vector<std::unique_ptr<HostTensor>> packed_;
  std::vector<DLTensor*> call_args_, pack_args_;
};

}  // namespace mycc
