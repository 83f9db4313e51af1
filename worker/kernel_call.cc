#include "worker/kernel_call.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "worker/trial_library.h"

namespace mycc {
namespace {

constexpr int kFirstOutput = 1 << 16;  // of a placement's tensors: after those of the arguments
constexpr uint8_t kBandByte = 0xa5, kPoisonByte = 0xaa,
                  kNanByte = 0xff;  // every float of such bytes is a NaN

}  // namespace

void GuardedBuffer::Free::operator()(uint8_t* memory) const { ::operator delete(memory, alignment); }

GuardedBuffer::GuardedBuffer(int64_t bytes, const MemoryPlace& place)
    : bytes_(bytes),
      offset_(place.offset),
      memory_(static_cast<uint8_t*>(::operator new(static_cast<size_t>(place.offset + bytes + 2 * kBand),
                                                   std::align_val_t(place.alignment))),
              Free{std::align_val_t(place.alignment)}) {
  std::memset(data() - kBand, kBandByte, kBand);
  std::memset(data() + bytes, kBandByte, kBand);
}

bool GuardedBuffer::intact() const {
  const auto untouched = [](const uint8_t* begin, const uint8_t* end) {
    return std::all_of(begin, end, [](uint8_t byte) { return byte == kBandByte; });
  };
  return untouched(data() - kBand, data()) && untouched(data() + bytes_, data() + bytes_ + kBand);
}

KernelCall::KernelCall(std::unique_ptr<Library> library, Arguments arguments, Library::Entry entry,
                       const Workload& workload, int placement)
    : library_(std::move(library)),
      arguments_(std::move(arguments)),
      entry_(entry),
      num_inputs_(static_cast<int>(workload.inputs.size())),
      output_tensors_(workload.outputs) {
  for (size_t i = 0; i < output_tensors_.size(); ++i) {
    const int output = num_inputs_ + static_cast<int>(i);
    outputs_.emplace_back(output_tensors_[i]->bytes(), PlaceOf(placement, kFirstOutput + output));
    arguments_.tensor(output).view()->data = outputs_.back().data();
  }
}

absl::StatusOr<std::unique_ptr<KernelCall>> KernelCall::Load(const std::string& path,
                                                             const Workload& workload,
                                                             const std::vector<const uint8_t*>& inputs,
                                                             int placement) {
  MYCC_ASSIGN_OR_RETURN(std::unique_ptr<Library> library, OpenTrial(path, workload));
  const ArtifactFunction& function = library->functions()[0];
  MYCC_ASSIGN_OR_RETURN(const Library::Entry entry, library->Symbol(function.name));
  MYCC_ASSIGN_OR_RETURN(Arguments arguments, Arguments::Create(library.get(), function.name, placement));
  std::unique_ptr<KernelCall> call(
      new KernelCall(std::move(library), std::move(arguments), entry, workload, placement));
  MYCC_RETURN_IF_ERROR(call->SetInputs(inputs));
  return call;
}

absl::Status KernelCall::SetInputs(const std::vector<const uint8_t*>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    HostTensor& tensor = arguments_.tensor(static_cast<int>(i));
    std::memcpy(tensor.data(), inputs[i], static_cast<size_t>(tensor.bytes()));
  }
  return arguments_.Pack();
}

void KernelCall::PoisonOutputs() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const int byte = IsFloat(output_tensors_[i]->dtype) ? kNanByte : kPoisonByte;
    std::memset(outputs_[i].data(), byte, static_cast<size_t>(outputs_[i].size()));
  }
}

Chain KernelCall::ChainOf(int threads, int64_t cache_bytes) {
  std::vector<MemorySpan> inputs_and_outputs, constants;
  for (int i = 0; i < arguments_.size(); ++i) {
    const DLTensor& view = *arguments_.call_args()[i];
    int64_t bytes = (int64_t{view.dtype.bits} * view.dtype.lanes + 7) / 8;
    for (int dim = 0; dim < view.ndim; ++dim) bytes *= view.shape[dim];
    const MemorySpan span{static_cast<uint8_t*>(view.data), bytes};
    (arguments_.arg(i).kind == "const" ? constants : inputs_and_outputs).push_back(span);
  }
  return Chain(threads, std::move(inputs_and_outputs), constants, cache_bytes);
}

std::vector<Repetition::Output> KernelCall::outputs() const {
  std::vector<Repetition::Output> outputs;
  for (size_t i = 0; i < outputs_.size(); ++i) outputs.push_back({output_tensors_[i], outputs_[i].data()});
  return outputs;
}

absl::Status KernelCall::CheckUntouched(const std::vector<const uint8_t*>& inputs) {
  for (int i = 0; i < num_inputs_; ++i) {
    HostTensor& tensor = arguments_.tensor(i);
    if (std::memcmp(tensor.data(), inputs[i], static_cast<size_t>(tensor.bytes())) != 0) {
      return absl::DataLossError(absl::StrCat("the kernel wrote to its input ", arguments_.arg(i).name));
    }
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].intact()) continue;
    return absl::DataLossError(absl::StrCat("the kernel wrote beside its output ", output_tensors_[i]->name));
  }
  return absl::OkStatus();
}

}  // namespace mycc
