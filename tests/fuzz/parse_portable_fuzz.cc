// Any bytes are refused in words, or are a kernel that survives its print and whose launches lie within the
// workload's tensors.
#include <string>

#include "base/check.h"
#include "codegen/cuda/portable.h"
#include "codegen/workload/parse.h"

namespace mycc {
namespace {

const Workload& Built() {
  static const auto* const workload = new Workload(*ParseWorkload(
      R"(workload rows(x: bf16[64,256], w: const bf16[32,256]) -> (y: f32[64,32]) {
           y[i,j] = sum[k:256](f32(x[i,k]) * f32(w[j,k])) })",
      "subject"));
  return *workload;
}

void CheckOperand(const CudaOperand& operand, int64_t arguments) {
  MYCC_CHECK(operand.argument >= CudaOperand::kWorkspace && operand.argument < arguments);
  MYCC_CHECK(operand.offset >= 0);
}

void CheckLaunches(const Portable& portable) {
  constexpr int64_t kOfCall = 3, kOfPack = 2;
  for (const auto* steps : {&portable.program.call, &portable.program.pack}) {
    const int64_t arguments = steps == &portable.program.call ? kOfCall : kOfPack;
    for (const CudaStep& step : *steps) {
      MYCC_CHECK(step.threads >= 1 && step.threads <= 1024 && step.cluster >= 1 && step.cluster <= 16);
      MYCC_CHECK(step.grid[0] >= 1 && step.grid[0] < int64_t{1} << 31);
      for (const CudaOperand& pointer : step.pointers) CheckOperand(pointer, arguments);
      for (const CudaTensorMap& map : step.maps) CheckOperand(map.operand, arguments);
    }
  }
}

}  // namespace
}  // namespace mycc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const target = new mycc::Target(*mycc::ParseTarget("h200"));
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto portable = mycc::ParsePortable(bytes, mycc::Built(), *target);
  if (!portable.ok()) {
    MYCC_CHECK(absl::IsInvalidArgument(portable.status())) << portable.status();
    return 0;
  }
  mycc::CheckLaunches(*portable);
  const std::string written = mycc::SerializePortable(*portable);
  const auto again = mycc::ParsePortable(written, mycc::Built(), *target);
  MYCC_CHECK(again.ok()) << again.status();
  MYCC_CHECK(mycc::SerializePortable(*again) == written);
  return 0;
}
