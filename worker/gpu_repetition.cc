#include "worker/gpu_repetition.h"

#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "worker/repetition.h"

namespace mycc {

absl::StatusOr<std::unique_ptr<GpuRepetition>> GpuRepetition::Make(GpuContext* device, GpuCase* test) {
  std::unique_ptr<GpuRepetition> made(new GpuRepetition(device, test));
  const Workload& workload = test->workload();
  const std::vector<CuAddress> arguments = test->Arguments();
  for (size_t i = 0; i < workload.outputs.size(); ++i) {
    Output output{workload.outputs[i], arguments[workload.inputs.size() + i], {}};
    MYCC_ASSIGN_OR_RETURN(output.first, device->Allocate(output.tensor->bytes()));
    made->bytes_ += output.tensor->bytes();
    made->outputs_.push_back(std::move(output));
  }
  const int64_t findings = kMostLaunches * static_cast<int64_t>(made->outputs_.size() * sizeof(Findings));
  MYCC_ASSIGN_OR_RETURN(made->findings_, device->Allocate(findings));
  made->bytes_ += findings;
  return made;
}

absl::Status GpuRepetition::Begin() {
  launches_ = 1;
  for (const Output& output : outputs_)
    MYCC_RETURN_IF_ERROR(device_->Copy(output.first.address(), output.address, output.tensor->bytes()));
  const std::vector<Findings> none(kMostLaunches * outputs_.size());
  return device_->Upload(findings_.address(), none.data(), findings_.bytes());
}

absl::Status GpuRepetition::Launch(GpuCall* call) {
  MYCC_CHECK(launches_ <= kMostLaunches) << "launches without a new beginning";
  MYCC_RETURN_IF_ERROR(test_->PoisonOutputs());
  MYCC_RETURN_IF_ERROR(call->Enqueue());
  CuAddress findings =
      findings_.address() + static_cast<CuAddress>((launches_ - 1) * outputs_.size() * sizeof(Findings));
  for (const Output& output : outputs_) {
    MYCC_RETURN_IF_ERROR(device_->Launch("mycc_differ", output.tensor->num_elements(), output.first.address(),
                                         output.address, output.tensor->num_elements(),
                                         DTypeBytes(output.tensor->dtype), findings));
    findings += sizeof(Findings);
  }
  ++launches_;
  return absl::OkStatus();
}

absl::Status GpuRepetition::Check(double limit_seconds) {
  MYCC_RETURN_IF_ERROR(device_->WaitAtMost(limit_seconds));
  std::vector<Findings> findings((launches_ - 1) * outputs_.size());
  MYCC_RETURN_IF_ERROR(device_->Download(findings.data(), findings_.address(),
                                         static_cast<int64_t>(findings.size() * sizeof(Findings))));
  for (size_t i = 0; i < findings.size(); ++i) {
    const uint32_t launch = static_cast<uint32_t>(i / outputs_.size()) + 2;
    MYCC_RETURN_IF_ERROR(
        SameBits({findings[i].wrong, findings[i].first_wrong}, launch, outputs_[i % outputs_.size()].tensor));
  }
  return absl::OkStatus();
}

}  // namespace mycc
