#include "codegen/runtime/arguments.h"

#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/runtime/artifact/artifact.h"

namespace mycc {
namespace {

constexpr int64_t kAlignment = 64;

DLDataType DLPackType(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * DTypeBytes(dtype));
  if (dtype == DType::kBool) return {kMyccCodeBool, bits, 1};
  if (dtype == DType::kBF16) return {kDLBfloat, bits, 1};
  if (dtype == DType::kU8) return {kDLUInt, bits, 1};
  return {static_cast<uint8_t>(IsFloat(dtype) ? kDLFloat : kDLInt), bits, 1};
}

int64_t NumElements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

absl::StatusOr<std::unique_ptr<HostTensor>> CreateTensor(DType dtype, std::vector<int64_t> shape) {
  MYCC_ASSIGN_OR_RETURN(HostTensor tensor, HostTensor::Create(dtype, std::move(shape)));
  return std::make_unique<HostTensor>(std::move(tensor));
}

}  // namespace

void HostTensor::Free::operator()(uint8_t* data) const { std::free(data); }

HostTensor::HostTensor(DType dtype, std::vector<int64_t> shape, uint8_t* data)
    : dtype_(dtype), shape_(std::move(shape)), data_(data) {
  view_ = {data, {kDLCPU, 0}, static_cast<int>(shape_.size()), DLPackType(dtype), shape_.data(), nullptr, 0};
}

absl::StatusOr<HostTensor> HostTensor::Create(DType dtype, std::vector<int64_t> shape) {
  const int64_t bytes = (NumElements(shape) * DTypeBytes(dtype) / kAlignment + 1) * kAlignment;
  auto* data = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, bytes));
  if (data == nullptr)
    return absl::ResourceExhaustedError(absl::StrCat("no memory for a tensor of ", bytes, " bytes"));
  std::memset(data, 0, bytes);
  return HostTensor(dtype, std::move(shape), data);
}

int64_t HostTensor::num_elements() const { return NumElements(shape_); }

absl::StatusOr<Arguments> Arguments::Create(Library* library, const std::string& function) {
  MYCC_ASSIGN_OR_RETURN(const ArtifactFunction* description, library->Find(function));
  Arguments arguments(library, description);
  for (const ArtifactArg& arg : description->args) {
    const std::optional<DType> dtype = ParseDType(arg.dtype);
    if (!dtype)
      return absl::FailedPreconditionError(absl::StrCat("argument `", arg.name, "` of ", description->name,
                                                        " has the unknown type ", arg.dtype));
    MYCC_ASSIGN_OR_RETURN(auto tensor, CreateTensor(*dtype, arg.shape));
    HostTensor* passed = tensor.get();
    if (arg.kind == "const") {
      arguments.pack_args_.push_back(tensor->view());
      MYCC_ASSIGN_OR_RETURN(auto packed, CreateTensor(DType::kU8, {arg.packed_bytes}));
      passed = packed.get();
      arguments.packed_.push_back(std::move(packed));
    }
    arguments.call_args_.push_back(passed->view());
    arguments.tensors_.push_back(std::move(tensor));
  }
  for (const auto& packed : arguments.packed_) arguments.pack_args_.push_back(packed->view());
  return arguments;
}

absl::Status Arguments::Pack() {
  if (packed_.empty()) return absl::OkStatus();
  return library_->Pack(function_->name, pack_args_);
}

absl::Status Arguments::Call() { return library_->Call(function_->name, call_args_); }

}  // namespace mycc
