#include "worker/gpu_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/workload/arg_reduction.h"
#include "codegen/workload/compare.h"
#include "worker/gpu_call.h"

namespace mycc {
namespace {

constexpr int64_t kBand = 4096;
constexpr uint8_t kBandByte = 0xa5, kPoisonByte = 0xaa,
                  kNanByte = 0xff;  // every float of such bytes is a NaN

int Number(DType dtype) { return static_cast<int>(dtype); }

uint64_t RangeOf(const InputDraw& draw) { return static_cast<uint64_t>(draw.high - draw.low) + 1; }

}  // namespace

GpuCase::GpuCase(GpuContext* device, const Workload& workload, uint64_t seed)
    : device_(device),
      workload_(workload),
      seed_(seed),
      tolerance_(ToleranceOf(workload)),
      draws_(DrawsOf(workload)) {}

absl::StatusOr<std::unique_ptr<GpuCase>> GpuCase::Make(GpuContext* device, const Workload& workload,
                                                       const v1::GpuCase& description) {
  std::unique_ptr<GpuCase> made(new GpuCase(device, workload, description.seed()));
  for (const Argument& input : workload.inputs) {
    MYCC_ASSIGN_OR_RETURN(Tensor tensor, made->MakeTensor(input.tensor));
    made->inputs_.push_back(std::move(tensor));
  }
  for (const Buffer& output : workload.outputs) {
    MYCC_ASSIGN_OR_RETURN(Tensor tensor, made->MakeTensor(output));
    made->outputs_.push_back(std::move(tensor));
  }
  const size_t checks = 3 * (workload.inputs.size() + workload.outputs.size());
  MYCC_ASSIGN_OR_RETURN(made->findings_, device->Allocate(static_cast<int64_t>(checks * sizeof(Findings))));
  MYCC_RETURN_IF_ERROR(made->DrawInputs());
  if (description.reference().empty()) {
    MYCC_RETURN_IF_ERROR(made->ExpectSampled(description));
  } else {
    MYCC_RETURN_IF_ERROR(made->ExpectReference(description.reference()));
  }
  MYCC_RETURN_IF_ERROR(made->MeasureScales());
  MYCC_ASSIGN_OR_RETURN(made->digest_, made->Digest());
  return made;
}

absl::StatusOr<GpuCase::Tensor> GpuCase::MakeTensor(const Buffer& buffer) {
  Tensor tensor;
  tensor.buffer = buffer;
  MYCC_ASSIGN_OR_RETURN(tensor.memory, device_->Allocate(buffer->bytes() + 2 * kBand));
  tensor.address = tensor.memory.address() + kBand;
  bytes_ += tensor.memory.bytes();
  MYCC_RETURN_IF_ERROR(device_->Fill(tensor.memory.address(), kBandByte, tensor.memory.bytes()));
  return tensor;
}

std::vector<CuAddress> GpuCase::Arguments() const {
  std::vector<CuAddress> addresses;
  for (const Tensor& tensor : inputs_) addresses.push_back(tensor.address);
  for (const Tensor& tensor : outputs_) addresses.push_back(tensor.address);
  return addresses;
}

absl::Status GpuCase::DrawInputs() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const InputDraw& draw = draws_[i];
    MYCC_RETURN_IF_ERROR(device_->Launch("mycc_draw", draw.count, inputs_[i].address, draw.count,
                                         Number(draw.dtype), DTypeBytes(draw.dtype), seed_, draw.first,
                                         draw.low, RangeOf(draw)));
  }
  return device_->Wait();
}

absl::Status GpuCase::ExpectReference(const std::string& library) {
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<GpuCall> call,
                        GpuCall::Load(device_, library, workload_, Arguments()));
  MYCC_RETURN_IF_ERROR(PoisonOutputs());
  MYCC_RETURN_IF_ERROR(call->Enqueue());
  for (const Tensor& tensor : outputs_) {
    Expected expected;
    expected.count = tensor.buffer->num_elements();
    MYCC_ASSIGN_OR_RETURN(expected.values, device_->Allocate(tensor.buffer->bytes()));
    MYCC_RETURN_IF_ERROR(device_->Copy(expected.values.address(), tensor.address, tensor.buffer->bytes()));
    bytes_ += tensor.buffer->bytes();
    expected_.push_back(std::move(expected));
  }
  return device_->Wait();
}

absl::Status GpuCase::ExpectSampled(const v1::GpuCase& description) {
  if (description.sampled_size() != static_cast<int>(outputs_.size()))
    return absl::InternalError("a case without a reference and without samples of each output");
  for (const v1::GpuCase::Sampled& sampled : description.sampled()) {
    Expected expected;
    expected.count = sampled.places_size();
    expected.host_places.assign(sampled.places().begin(), sampled.places().end());
    const int64_t values = static_cast<int64_t>(sampled.values().size());
    const int64_t places = expected.count * static_cast<int64_t>(sizeof(int64_t));
    MYCC_ASSIGN_OR_RETURN(expected.values, device_->Allocate(values));
    MYCC_ASSIGN_OR_RETURN(expected.places, device_->Allocate(places));
    MYCC_RETURN_IF_ERROR(device_->Upload(expected.values.address(), sampled.values().data(), values));
    MYCC_RETURN_IF_ERROR(device_->Upload(expected.places.address(), expected.host_places.data(), places));
    expected_.push_back(std::move(expected));
  }
  return absl::OkStatus();
}

absl::Status GpuCase::MeasureScales() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Expected& expected = expected_[i];
    const DType dtype = outputs_[i].buffer->dtype;
    MYCC_ASSIGN_OR_RETURN(expected.scale, device_->Allocate(sizeof(uint64_t)));
    const uint64_t least = IsFloat(dtype) ? std::bit_cast<uint64_t>(SmallestNormal(dtype)) : 0;
    MYCC_RETURN_IF_ERROR(device_->Upload(expected.scale.address(), &least, sizeof(least)));
    if (!IsFloat(dtype)) continue;
    MYCC_RETURN_IF_ERROR(device_->Launch("mycc_scale", expected.count, expected.values.address(),
                                         expected.count, Number(dtype), expected.scale.address()));
  }
  return device_->Wait();
}

absl::StatusOr<uint64_t> GpuCase::Digest() {
  const CuAddress sum = findings_.address();
  MYCC_RETURN_IF_ERROR(device_->Fill(sum, 0, sizeof(uint64_t)));
  for (const Expected& expected : expected_) {
    for (const CudaBuffer* memory : {&expected.values, &expected.places, &expected.scale})
      MYCC_RETURN_IF_ERROR(
          device_->Launch("mycc_digest", memory->bytes(), memory->address(), memory->bytes(), sum));
  }
  uint64_t digest = 0;
  MYCC_RETURN_IF_ERROR(device_->Download(&digest, sum, sizeof(digest)));
  return digest;
}

absl::StatusOr<bool> GpuCase::Restore() {
  for (const std::vector<Tensor>* tensors : {&inputs_, &outputs_}) {
    for (const Tensor& tensor : *tensors)
      MYCC_RETURN_IF_ERROR(device_->Fill(tensor.memory.address(), kBandByte, tensor.memory.bytes()));
  }
  MYCC_RETURN_IF_ERROR(DrawInputs());
  MYCC_ASSIGN_OR_RETURN(const uint64_t digest, Digest());
  return digest == digest_;
}

absl::Status GpuCase::PoisonOutputs() {
  for (const Tensor& tensor : outputs_) {
    const uint8_t byte = IsFloat(tensor.buffer->dtype) ? kNanByte : kPoisonByte;
    MYCC_RETURN_IF_ERROR(device_->Fill(tensor.address, byte, tensor.buffer->bytes()));
  }
  return absl::OkStatus();
}

// Two bands of each tensor, inputs first; then each tensor.
absl::StatusOr<std::vector<GpuCase::Findings>> GpuCase::Check() {
  std::vector<Findings> findings(3 * (inputs_.size() + outputs_.size()));
  const int64_t bytes = static_cast<int64_t>(findings.size() * sizeof(Findings));
  MYCC_RETURN_IF_ERROR(device_->Upload(findings_.address(), findings.data(), bytes));
  CuAddress next = findings_.address();
  const auto take = [&next] { return std::exchange(next, next + sizeof(Findings)); };
  for (const std::vector<Tensor>* tensors : {&inputs_, &outputs_}) {
    for (const Tensor& tensor : *tensors) {
      for (const CuAddress band : {tensor.memory.address(), tensor.address + tensor.buffer->bytes()}) {
        MYCC_RETURN_IF_ERROR(device_->Launch("mycc_check_bytes", kBand, band, kBand, int{kBandByte}, take()));
      }
    }
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const InputDraw& draw = draws_[i];
    MYCC_RETURN_IF_ERROR(device_->Launch("mycc_check_drawn", draw.count, inputs_[i].address, draw.count,
                                         Number(draw.dtype), DTypeBytes(draw.dtype), seed_, draw.first,
                                         draw.low, RangeOf(draw), take()));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Expected& expected = expected_[i];
    MYCC_RETURN_IF_ERROR(device_->Launch("mycc_compare", expected.count, expected.values.address(),
                                         outputs_[i].address, expected.places.address(), expected.count,
                                         Number(outputs_[i].buffer->dtype), tolerance_.of_value,
                                         tolerance_.of_scale, expected.scale.address(), take()));
  }
  MYCC_RETURN_IF_ERROR(device_->Download(findings.data(), findings_.address(), bytes));
  return findings;
}

absl::Status GpuCase::Verify(v1::Verification* verification) {
  verification->Clear();
  verification->add_seeds(seed_);
  MYCC_ASSIGN_OR_RETURN(const std::vector<Findings> findings, Check());
  absl::Status status;
  const auto fail = [&status](const std::string& what) {
    if (status.ok()) status = absl::DataLossError(what);
  };
  auto at = findings.begin();
  for (const std::vector<Tensor>* tensors : {&inputs_, &outputs_}) {
    for (const Tensor& tensor : *tensors) {
      if (at[0].wrong + at[1].wrong > 0)
        fail(absl::StrCat("the kernel wrote beside ", tensors == &inputs_ ? "its input " : "its output ",
                          tensor.buffer->name));
      at += 2;
    }
  }
  for (const Tensor& tensor : inputs_) {
    if ((at++)->wrong > 0) fail(absl::StrCat("the kernel wrote to its input ", tensor.buffer->name));
  }
  for (size_t i = 0; i < outputs_.size(); ++i, ++at) {
    verification->set_max_abs_error(
        std::max(verification->max_abs_error(), std::bit_cast<double>(at->max_abs_error)));
    verification->set_max_rel_error(
        std::max(verification->max_rel_error(), std::bit_cast<double>(at->max_rel_error)));
    verification->set_outputs_checked(verification->outputs_checked() + 1);
    verification->set_elements_checked(verification->elements_checked() +
                                       static_cast<uint64_t>(expected_[i].count));
    if (at->wrong == 0) continue;
    MYCC_ASSIGN_OR_RETURN(const std::string mismatch, Mismatch(static_cast<int>(i), *at));
    if (!mismatch.empty()) fail(absl::StrCat("output ", outputs_[i].buffer->name, ": ", mismatch));
  }
  verification->set_passed(status.ok());
  return status;
}

// The words for an output that is wrong; empty when it is excused (an argmax among equals).
absl::StatusOr<std::string> GpuCase::Mismatch(int output, const Findings& findings) {
  const Buffer& buffer = outputs_[output].buffer;
  const Expected& expected = expected_[output];
  const int width = DTypeBytes(buffer->dtype);
  const bool is_arg = std::ranges::any_of(workload_.stages, [&](const Stage& stage) {
    return stage.output == buffer && (stage.reduce == ReduceOp::kArgMax || stage.reduce == ReduceOp::kArgMin);
  });
  if (is_arg) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<NDArray> inputs, DownloadInputs());
    MYCC_ASSIGN_OR_RETURN(const std::vector<uint8_t> got, DownloadOutput(output));
    std::vector<uint8_t> values(static_cast<size_t>(expected.count * width));
    MYCC_RETURN_IF_ERROR(device_->Download(values.data(), expected.values.address(), expected.count * width));
    std::vector<const uint8_t*> pointers;
    for (const NDArray& input : inputs) pointers.push_back(input.bytes.data());
    ArgReduction judge(workload_, buffer, pointers);
    return Compare({buffer->dtype, values.data(), expected.host_places, expected.count}, got.data(),
                   tolerance_, judge.excuse())
        .first_mismatch;
  }
  const int64_t i = static_cast<int64_t>(findings.first_wrong);
  const int64_t place = expected.host_places.empty() ? i : expected.host_places[i];
  uint64_t want = 0, have = 0, scale = 0;
  MYCC_RETURN_IF_ERROR(device_->Download(&want, expected.values.address() + i * width, width));
  MYCC_RETURN_IF_ERROR(device_->Download(&have, outputs_[output].address + place * width, width));
  MYCC_RETURN_IF_ERROR(device_->Download(&scale, expected.scale.address(), sizeof(scale)));
  const double allowed = tolerance_.of_value * std::abs(LoadScalar(buffer->dtype, &want).f) +
                         tolerance_.of_scale * std::bit_cast<double>(scale);
  return absl::StrCat(DescribeMismatch(buffer->dtype, place, &want, &have, allowed), " (", findings.wrong,
                      " of ", expected.count, " elements are wrong)");
}

absl::StatusOr<std::vector<NDArray>> GpuCase::DownloadInputs() {
  std::vector<NDArray> arrays;
  for (const Tensor& tensor : inputs_) {
    NDArray array = NDArray::Zeros(tensor.buffer->dtype, tensor.buffer->shape);
    MYCC_RETURN_IF_ERROR(device_->Download(array.bytes.data(), tensor.address, tensor.buffer->bytes()));
    arrays.push_back(std::move(array));
  }
  return arrays;
}

absl::StatusOr<std::vector<uint8_t>> GpuCase::DownloadOutput(int output) {
  const Tensor& tensor = outputs_[output];
  std::vector<uint8_t> bytes(static_cast<size_t>(tensor.buffer->bytes()));
  MYCC_RETURN_IF_ERROR(device_->Download(bytes.data(), tensor.address, tensor.buffer->bytes()));
  return bytes;
}

}  // namespace mycc
