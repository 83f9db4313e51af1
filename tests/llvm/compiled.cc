#include "tests/llvm/compiled.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "codegen/ir/interpreter.h"
#include "codegen/llvm/emit.h"
#include "codegen/schedule/schedule.h"
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
  const std::vector<NDArray> inputs = RandomInputs(canonical, 11);
  MYCC_ASSIGN_OR_RETURN(const std::vector<NDArray> expected, RunReference(canonical, inputs));
  MYCC_ASSIGN_OR_RETURN(const LoweredFunction lowered, Lower(function, target));
  const auto explained = [&](const absl::Status& status) {
    if (status.ok()) return status;
    return absl::InternalError(
        absl::StrCat(status.message(), "\n", PrintTarget(target), "\n", PrintLowered(lowered)));
  };
  if (interpret || !IsRunnable(target)) {
    const auto interpreted = RunFunction(WholeFunction(lowered), inputs, 3);
    MYCC_RETURN_IF_ERROR(explained(interpreted.status()));
    MYCC_RETURN_IF_ERROR(explained(CheckClose(*interpreted, expected, tolerance, "lowered IR")));
  }
  if (!IsRunnable(target))
    return explained(EmitModule({EmitUnit{"k", lowered}}, target, EmitKind::kObject).status());
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<JitKernel> kernel, JitKernel::Compile(lowered, target));
  return explained(CheckClose(kernel->Run(inputs), expected, tolerance, "compiled code"));
}

absl::Status CheckCompiled(const Workload& canonical, const std::string& steps, const Target& target,
                           double tolerance, bool interpret) {
  MYCC_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(absl::StrCat("v1\n", steps)));
  MYCC_ASSIGN_OR_RETURN(const Schedule schedule, Replay(canonical, target, trace));
  return CheckCompiledFunction(canonical, schedule.function(), target, tolerance, interpret);
}

}  // namespace mycc
