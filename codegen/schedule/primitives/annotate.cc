#include "codegen/schedule/primitives/annotate.h"

#include <string>

#include "base/status.h"

namespace mycc {
namespace {

absl::Status CheckDevice(MarkedDevice device, const Target& target) {
  const bool on_gpu = target.kind == TargetKind::kCuda;
  const bool fits = device == MarkedDevice::kAny   ? true
                    : device == MarkedDevice::kCpu ? !on_gpu
                    : device == MarkedDevice::kGpu ? on_gpu
                                                   : on_gpu && CudaArchOf(target) / 10 == 9;
  if (fits) return absl::OkStatus();
  constexpr std::string_view kExpected[] = {"any target", "a CPU", "a GPU", "sm_90a"};
  return Refusal("the target is ", PrintTarget(target), "; expected ",
                 std::string(kExpected[static_cast<size_t>(device)]));
}

absl::Status CheckLoop(const LoopMark& mark, const For& loop) {
  if (!mark.loop_kind || loop.loop_kind == *mark.loop_kind) return absl::OkStatus();
  return Refusal("the loop is ", LoopKindName(loop.loop_kind), "; expected a ", LoopKindName(*mark.loop_kind),
                 " loop");
}

absl::Status CheckNumber(const MarkNumber& number, const StepArgs& args) {
  if (number.at == 0) return absl::OkStatus();
  const int64_t value = args.Int(number.at);
  if (value >= number.least && value <= number.most) return absl::OkStatus();
  return Refusal(value, " ", std::string(number.unit), "; expected ", number.least, " to ", number.most);
}

}  // namespace

absl::StatusOr<Function> AnnotateLoop(const Function& function, const Target& target, const StepArgs& args,
                                      const LoopMark& mark) {
  MYCC_ASSIGN_OR_RETURN(const Path path, FindLoop(function, args.Name(0)));
  const For& loop = path.loop();
  MYCC_RETURN_IF_ERROR(CheckDevice(mark.device, target));
  MYCC_RETURN_IF_ERROR(CheckLoop(mark, loop));
  for (const MarkNumber& number : mark.numbers) MYCC_RETURN_IF_ERROR(CheckNumber(number, args));
  if (mark.check != nullptr) MYCC_RETURN_IF_ERROR(mark.check({function, target, args, path, loop}));
  const Stmt marked = Changed(loop, [&](For* changed) { mark.set(args, &changed->marks); });
  return WithBody(function, ReplaceAt(path, marked));
}

}  // namespace mycc
