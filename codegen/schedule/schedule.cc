#include "codegen/schedule/schedule.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/ir/debug.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

absl::Status CheckArgs(const Step& step, const PrimitiveInfo& info) {
  // A signature's letters, in the order of StepArg's alternatives.
  constexpr std::string_view kKinds = "niNI";
  const auto fits = [&](const StepArg& arg, char kind) { return arg.value.index() == kKinds.find(kind); };
  if (std::ranges::equal(step.args, info.signature, fits)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(PrintStep(step), ": expected ", std::string(info.usage)));
}

}  // namespace

Schedule Schedule::Create(const Workload& canonical, const Target& target) {
  Schedule schedule;
  schedule.function_ = BuildNaive(canonical);
  schedule.target_ = target;
  return schedule;
}

absl::StatusOr<Function> ApplyStep(const Function& function, const Target& target, const Step& step) {
  const PrimitiveInfo* info = FindPrimitive(step.primitive);
  if (info == nullptr) return absl::InvalidArgumentError(UnknownPrimitive(step.primitive));
  MYCC_RETURN_IF_ERROR(CheckArgs(step, *info));
  absl::StatusOr<Function> result = info->apply(function, target, StepArgs(step));
  if (result.ok()) return result;
  return absl::Status(result.status().code(), absl::StrCat(PrintStep(step), ": ", result.status().message()));
}

absl::Status Schedule::Apply(const Step& step) {
  MYCC_ASSIGN_OR_RETURN(function_, ApplyStep(function_, target_, step));
  trace_.steps.push_back(step);
  return absl::OkStatus();
}

absl::StatusOr<Schedule> Replay(const Workload& canonical, const Target& target, const Trace& trace) {
  const TimedStep timed("replay", [&] { return PrintSketch(trace); });
  Schedule schedule = Schedule::Create(canonical, target);
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    const absl::Status status = schedule.Apply(trace.steps[i]);
    if (!status.ok())
      return absl::Status(status.code(), absl::StrCat("step ", i + 1, ": ", status.message()));
  }
  return schedule;
}

}  // namespace mycc
