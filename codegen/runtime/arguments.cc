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

constexpr int64_t kLineBytes = 64;

int64_t NumElements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

}  // namespace

DLDataType DLPackType(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * DTypeBytes(dtype));
  if (dtype == DType::kBool) return {kMyccCodeBool, bits, 1};
  if (dtype == DType::kBF16) return {kDLBfloat, bits, 1};
  if (dtype == DType::kF8E4M3) return {kMyccCodeF8E4M3, bits, 1};
  if (dtype == DType::kF8E5M2) return {kMyccCodeF8E5M2, bits, 1};
  if (IsUnsigned(dtype)) return {kDLUInt, bits, 1};
  return {static_cast<uint8_t>(IsFloat(dtype) ? kDLFloat : kDLInt), bits, 1};
}

void HostTensor::Free::operator()(uint8_t* memory) const { std::free(memory); }

HostTensor::HostTensor(DType dtype, std::vector<int64_t> shape, bool is_text, uint8_t* memory, int64_t offset)
    : dtype_(dtype), shape_(std::move(shape)), memory_(memory), data_(memory + offset) {
  view_ = {data_, {kDLCPU, 0}, static_cast<int>(shape_.size()), DLPackType(dtype), shape_.data(), nullptr, 0};
  if (is_text) view_.dtype.code = kDLOpaqueHandle;
}

absl::StatusOr<HostTensor> HostTensor::Create(DType dtype, std::vector<int64_t> shape, bool is_text,
                                              const MemoryPlace& place) {
  const int64_t used = place.offset + (NumElements(shape) * DTypeBytes(dtype) / kLineBytes + 1) * kLineBytes;
  const int64_t bytes = (used + place.alignment - 1) / place.alignment * place.alignment;
  auto* memory = static_cast<uint8_t*>(std::aligned_alloc(place.alignment, bytes));
  if (memory == nullptr)
    return absl::ResourceExhaustedError(absl::StrCat("no memory for a tensor of ", bytes, " bytes"));
  std::memset(memory + place.offset, 0, bytes - place.offset);
  return HostTensor(dtype, std::move(shape), is_text, memory, place.offset);
}

std::vector<std::string> HostTensor::Texts() const {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < num_elements(); ++i) {
    const char* text = nullptr;
    std::memcpy(&text, data_ + 8 * i, 8);
    texts.emplace_back(text == nullptr ? "" : text);
  }
  return texts;
}

void HostTensor::SetTexts(std::vector<std::string> texts) {
  texts_ = std::move(texts);
  for (size_t i = 0; i < texts_.size(); ++i) {
    const char* text = texts_[i].c_str();
    std::memcpy(data_ + 8 * i, &text, 8);
  }
}

int64_t HostTensor::num_elements() const { return NumElements(shape_); }

DeviceTensor::DeviceTensor(CudaBuffer buffer, std::vector<int64_t> shape, const DLTensor& host, int device_id)
    : buffer_(std::move(buffer)), shape_(std::move(shape)), view_(host) {
  view_.data = buffer_.data();
  view_.device = {kDLCUDA, device_id};
  view_.shape = shape_.data();
}

absl::StatusOr<DeviceTensor> DeviceTensor::Create(CudaSession* session, HostTensor* tensor) {
  MYCC_ASSIGN_OR_RETURN(CudaBuffer buffer, session->Allocate(tensor->bytes()));
  return DeviceTensor(std::move(buffer), tensor->shape(), *tensor->view(), session->ordinal());
}

absl::StatusOr<DLTensor*> Arguments::AddTensor(DType dtype, const std::vector<int64_t>& shape, bool is_text,
                                               std::vector<std::unique_ptr<HostTensor>>* tensors,
                                               std::vector<std::unique_ptr<DeviceTensor>>* on_device) {
  MYCC_ASSIGN_OR_RETURN(HostTensor tensor,
                        HostTensor::Create(dtype, shape, is_text, PlaceOf(placement_, num_placed_++)));
  tensors->push_back(std::make_unique<HostTensor>(std::move(tensor)));
  if (session_ == nullptr) return tensors->back()->view();
  MYCC_ASSIGN_OR_RETURN(DeviceTensor copy, DeviceTensor::Create(session_.get(), tensors->back().get()));
  on_device->push_back(std::make_unique<DeviceTensor>(std::move(copy)));
  return on_device->back()->view();
}

absl::StatusOr<Arguments> Arguments::Create(Library* library, const std::string& function, int placement) {
  MYCC_ASSIGN_OR_RETURN(const ArtifactFunction* description, library->Find(function));
  Arguments arguments(library, description, placement);
  if (library->on_cuda()) {
    MYCC_ASSIGN_OR_RETURN(arguments.session_, CudaSession::Open(library->device_id()));
  }
  std::vector<DLTensor*> packed_args;
  for (const ArtifactArg& arg : description->args) {
    const std::optional<DType> dtype = arg.is_text() ? DType::kU64 : ParseDType(arg.dtype);
    if (!arg.bounded.empty()) arguments.bounded_.push_back(arguments.size());
    if (!dtype)
      return absl::FailedPreconditionError(absl::StrCat("argument `", arg.name, "` of ", description->name,
                                                        " has the unknown type ", arg.dtype));
    MYCC_ASSIGN_OR_RETURN(DLTensor * passed, arguments.AddTensor(*dtype, arg.shape, arg.is_text(),
                                                                 &arguments.tensors_, &arguments.on_device_));
    if (arg.kind == "const") {
      arguments.pack_args_.push_back(passed);
      MYCC_ASSIGN_OR_RETURN(passed, arguments.AddTensor(DType::kU8, {arg.packed_bytes}, /*is_text=*/false,
                                                        &arguments.packed_, &arguments.packed_on_device_));
      packed_args.push_back(passed);
    }
    arguments.call_args_.push_back(passed);
  }
  arguments.pack_args_.insert(arguments.pack_args_.end(), packed_args.begin(), packed_args.end());
  return arguments;
}

absl::Status Arguments::Upload() {
  for (size_t i = 0; i < on_device_.size(); ++i) MYCC_RETURN_IF_ERROR(on_device_[i]->CopyFrom(*tensors_[i]));
  // A copy may be incomplete when the driver returns, and another stream would not wait for it.
  return session_ == nullptr ? absl::OkStatus() : session_->Synchronize();
}

absl::Status Arguments::Download() {
  if (session_ != nullptr) MYCC_RETURN_IF_ERROR(session_->Synchronize());
  for (size_t i = 0; i < on_device_.size(); ++i) {
    if (arg(static_cast<int>(i)).kind == "output")
      MYCC_RETURN_IF_ERROR(on_device_[i]->CopyTo(tensors_[i].get()));
  }
  return absl::OkStatus();
}

absl::Status Arguments::Pack() {
  if (packed_.empty()) return absl::OkStatus();
  MYCC_RETURN_IF_ERROR(Upload());
  return library_->Pack(function_->name, pack_args_);
}

void Arguments::ResetShapes() {
  for (const int i : bounded_) tensors_[i]->SetShape(arg(i).shape);
}

absl::Status Arguments::Call() {
  ResetShapes();
  MYCC_RETURN_IF_ERROR(Upload());
  MYCC_RETURN_IF_ERROR(library_->Call(function_->name, call_args_));
  return Download();
}

}  // namespace mycc
