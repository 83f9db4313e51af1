#include "worker/gpu_special.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "worker/permitted_output.h"

namespace mycc {

GpuSpecial::GpuSpecial(GpuContext* device, GpuCase* test, uint64_t seed)
    : device_(device), test_(test), draws_(SpecialDrawsOf(test->workload(), seed)) {}

absl::StatusOr<std::unique_ptr<GpuSpecial>> GpuSpecial::Make(GpuContext* device, GpuCase* test,
                                                             const v1::GpuCase& description) {
  std::unique_ptr<GpuSpecial> made(new GpuSpecial(device, test, description.seed()));
  for (const SpecialDraw& draw : made->draws_) {
    MYCC_ASSIGN_OR_RETURN(CudaBuffer values,
                          made->Keep(draw.values.data(), draw.values.size() * sizeof(uint64_t)));
    made->values_.push_back(std::move(values));
  }
  for (PermittedValues& permitted : PermittedOf(test->workload(), description.permitted())) {
    Looked looked;
    const size_t count = permitted.places.size();
    MYCC_ASSIGN_OR_RETURN(looked.places, made->Keep(permitted.places.data(), count * sizeof(int64_t)));
    MYCC_ASSIGN_OR_RETURN(looked.elements, made->Keep(nullptr, count * DTypeBytes(permitted.dtype)));
    looked.permitted = std::move(permitted);
    made->looked_.push_back(std::move(looked));
  }
  return made;
}

// Device memory of `bytes` bytes, with the bytes at `from` unless it is null.
absl::StatusOr<CudaBuffer> GpuSpecial::Keep(const void* from, size_t bytes) {
  if (bytes == 0) return CudaBuffer();
  MYCC_ASSIGN_OR_RETURN(CudaBuffer memory, device_->Allocate(static_cast<int64_t>(bytes)));
  bytes_ += memory.bytes();
  if (from != nullptr)
    MYCC_RETURN_IF_ERROR(device_->Upload(memory.address(), from, static_cast<int64_t>(bytes)));
  return memory;
}

absl::Status GpuSpecial::Draw() {
  const std::vector<CuAddress> arguments = test_->Arguments();
  for (size_t i = 0; i < draws_.size(); ++i) {
    const SpecialDraw& draw = draws_[i];
    if (draw.values.empty()) continue;
    MYCC_RETURN_IF_ERROR(device_->Launch("mycc_sprinkle", draw.count, arguments[i], draw.count,
                                         static_cast<int>(draw.dtype), DTypeBytes(draw.dtype), draw.seed,
                                         draw.one_in, draw.row, draw.small, values_[i].address(),
                                         static_cast<int>(draw.values.size())));
  }
  return device_->Wait();
}

absl::Status GpuSpecial::Check() {
  const Workload& workload = test_->workload();
  MYCC_CHECK(looked_.size() == workload.outputs.size()) << "a case without permitted values";
  const std::vector<CuAddress> arguments = test_->Arguments();
  for (size_t i = 0; i < looked_.size(); ++i) {
    const Looked& looked = looked_[i];
    const int64_t count = static_cast<int64_t>(looked.permitted.places.size());
    const int bytes = DTypeBytes(looked.permitted.dtype);
    MYCC_RETURN_IF_ERROR(device_->Launch("mycc_gather", count, looked.elements.address(),
                                         arguments[workload.inputs.size() + i], looked.places.address(),
                                         count, bytes));
    std::vector<uint8_t> elements(static_cast<size_t>(count * bytes));
    MYCC_RETURN_IF_ERROR(device_->Download(elements.data(), looked.elements.address(), count * bytes));
    const std::string forbidden = FirstForbiddenOf(looked.permitted, elements.data());
    if (!forbidden.empty())
      return absl::DataLossError(absl::StrCat("output ", workload.outputs[i]->name, ": ", forbidden));
  }
  return absl::OkStatus();
}

}  // namespace mycc
