#include "tests/llvm/compiled.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "codegen/ir/interpreter.h"
#include "codegen/llvm/emit.h"
#include "codegen/schedule/schedule.h"
#include "codegen/workload/permitted.h"
#include "codegen/workload/print.h"
#include "codegen/workload/reference.h"
#include "tests/llvm/jit.h"
#include "tests/passes/lowered_function.h"
#include "tests/schedule/testing.h"
#include "tests/target/told_host.h"

namespace mycc {
namespace {

Target MustParse(const std::string& text) {
  absl::StatusOr<Target> target = ParseTarget(text);
  MYCC_CHECK(target.ok()) << std::string(target.status().message());
  return *target;
}

// The inputs of a workload's kernels, and the results that they are held to.
struct Judge {
  std::string workload;
  std::vector<NDArray> inputs, expected, special;
  std::vector<PermittedValues> permitted;  // of each output on the special inputs, at some hundred places

  absl::Status CheckSpecial(const std::vector<NDArray>& actual) const {
    for (size_t o = 0; o < actual.size(); ++o) {
      const std::string forbidden = FirstForbidden(permitted[o], actual[o].bytes.data());
      if (!forbidden.empty())
        return absl::InternalError(absl::StrCat("compiled code: output ", o, ": ", forbidden));
    }
    return absl::OkStatus();
  }
};

// Tests check many schedules of a workload, one after the other: the last judge is kept.
absl::StatusOr<const Judge*> JudgeOf(const Workload& canonical) {
  static auto& last = *new Judge;
  const std::string text = PrintWorkload(canonical);
  if (last.workload == text) return &last;
  Judge judge{text, RandomInputs(canonical, 11), {}, SpecialInputs(canonical, 12), {}};
  MYCC_ASSIGN_OR_RETURN(judge.expected, RunReference(canonical, judge.inputs));
  PermittedReference reference(canonical, StoredElements(judge.special));
  for (size_t o = 0; o < canonical.outputs.size(); ++o) {
    judge.permitted.push_back(PermitOutput(canonical, &reference, static_cast<int>(o), /*count=*/300,
                                           /*seconds=*/0.2, /*seed=*/3));
  }
  last = std::move(judge);
  return &last;
}

}  // namespace

Target AvxTarget() { return MustParse("v1 cpu mcpu=haswell l1d=32K l2=512K threads=2"); }
Target Avx512Target() { return MustParse("v1 cpu mcpu=sapphirerapids l1d=48K l2=2M threads=2"); }

std::vector<Target> RunnableTargets() {
  std::vector<Target> runnable;
  for (const char* mcpu : {"x86-64", "ivybridge", "haswell", "skylake-avx512", "znver4"}) {
    const Target target = MustParse(absl::StrCat("v1 cpu mcpu=", mcpu, " l1d=32K l2=512K threads=2"));
    if (IsRunnable(target)) runnable.push_back(target);
  }
  return runnable;
}

bool IsRunnable(const Target& target) { return RunsHere(target); }

absl::StatusOr<LoweredFunction> LowerTrace(const Workload& canonical, const std::string& steps,
                                           const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(absl::StrCat("v1\n", steps)));
  MYCC_ASSIGN_OR_RETURN(const Schedule schedule, Replay(canonical, target, trace));
  return Lower(schedule.function(), target);
}

absl::Status CheckCompiledFunction(const Workload& canonical, const Function& function, const Target& target,
                                   double tolerance, bool interpret) {
  MYCC_ASSIGN_OR_RETURN(const Judge* const judge, JudgeOf(canonical));
  MYCC_ASSIGN_OR_RETURN(const LoweredFunction lowered, Lower(function, target));
  const auto explained = [&](const absl::Status& status) {
    if (status.ok()) return status;
    return absl::InternalError(
        absl::StrCat(status.message(), "\n", PrintTarget(target), "\n", PrintLowered(lowered)));
  };
  if (interpret || !IsRunnable(target)) {
    const auto interpreted = RunFunction(WholeFunction(lowered), judge->inputs, 3);
    MYCC_RETURN_IF_ERROR(explained(interpreted.status()));
    MYCC_RETURN_IF_ERROR(explained(CheckClose(*interpreted, judge->expected, tolerance, "lowered IR")));
  }
  if (!IsRunnable(target))
    return explained(EmitModule({EmitUnit{"k", lowered}}, target, EmitKind::kObject).status());
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<JitKernel> kernel, JitKernel::Compile(lowered, target));
  MYCC_RETURN_IF_ERROR(
      explained(CheckClose(kernel->Run(judge->inputs), judge->expected, tolerance, "compiled code")));
  // Reads beyond a tensor crash here.
  return explained(judge->CheckSpecial(kernel->Run(judge->special, Placement::kLastByte)));
}

absl::Status CheckCompiled(const Workload& canonical, const std::string& steps, const Target& target,
                           double tolerance, bool interpret) {
  MYCC_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(absl::StrCat("v1\n", steps)));
  MYCC_ASSIGN_OR_RETURN(const Schedule schedule, Replay(canonical, target, trace));
  return CheckCompiledFunction(canonical, schedule.function(), target, tolerance, interpret);
}

}  // namespace mycc
