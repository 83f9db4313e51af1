#include "tests/cuda/emitted.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/ir/interpreter.h"
#include "codegen/schedule/schedule.h"
#include "codegen/workload/reference.h"
#include "tests/cuda/host_run.h"
#include "tests/passes/lowered_function.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

Target Preset(const char* name) {
  absl::StatusOr<Target> target = ParseTarget(name);
  MYCC_CHECK(target.ok()) << std::string(target.status().message());
  return *std::move(target);
}

absl::Status Explained(const absl::Status& status, const std::string& what) {
  if (status.ok()) return status;
  return absl::InternalError(absl::StrCat(status.message(), "\n", what));
}

struct Emitted {
  size_t at;  // of the case
  std::vector<NDArray> inputs, expected;
};

// Interprets the lowered case, and emits it as a unit of the library.
absl::StatusOr<Emitted> Prepare(const ScheduledCase& gpu_case, size_t at, double tolerance,
                                std::vector<HostUnit>* units) {
  HostUnit unit;
  MYCC_ASSIGN_OR_RETURN(unit.lowered, Lower(gpu_case.function, Sm90a()));
  MYCC_ASSIGN_OR_RETURN(unit.program, EmitCuda(unit.lowered, Sm90a(), absl::StrCat("k", at)));
  Emitted emitted{at, RandomInputs(gpu_case.canonical, 11), {}};
  MYCC_ASSIGN_OR_RETURN(emitted.expected, RunReference(gpu_case.canonical, emitted.inputs));
  const auto interpreted = RunFunction(WholeFunction(unit.lowered), emitted.inputs, 3);
  const std::string text = PrintLowered(unit.lowered);
  MYCC_RETURN_IF_ERROR(Explained(interpreted.status(), text));
  MYCC_RETURN_IF_ERROR(
      Explained(CheckClose(*interpreted, emitted.expected, tolerance, "lowered code"), text));
  units->push_back(std::move(unit));
  return emitted;
}

}  // namespace

Target Sm80() { return Preset("a100"); }
Target Sm89() { return Preset("cuda arch=sm_89 model=\"any\" sms=128 smem=99K l2=64M"); }
Target Sm90a() { return Preset("h200"); }

absl::StatusOr<LoweredFunction> LowerForGpu(const Workload& canonical, const std::string& steps,
                                            const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(absl::StrCat("v1\n", steps)));
  MYCC_ASSIGN_OR_RETURN(const Schedule schedule, Replay(canonical, target, trace));
  return Lower(schedule.function(), target);
}

absl::StatusOr<ScheduledCase> CaseOf(const std::string& workload, const std::string& steps) {
  ScheduledCase result{steps, CanonicalWorkload(workload), {}};
  MYCC_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(absl::StrCat("v1\n", steps)));
  MYCC_ASSIGN_OR_RETURN(const Schedule schedule, Replay(result.canonical, Sm90a(), trace));
  result.function = schedule.function();
  return result;
}

absl::StatusOr<CudaProgram> EmitChecked(const ScheduledCase& gpu_case, const std::vector<Target>& targets) {
  CudaProgram program;
  for (const Target& target : targets) {
    MYCC_ASSIGN_OR_RETURN(const LoweredFunction lowered, Lower(gpu_case.function, target));
    MYCC_ASSIGN_OR_RETURN(program, EmitCuda(lowered, target, "k"));
    const absl::StatusOr<CudaImage> image = CompileCuda(program.source, target);
    MYCC_RETURN_IF_ERROR(Explained(image.status(), program.source));
    for (const CudaKernelResources& kernel : image->kernels) {
      if (kernel.spill_bytes == 0 && kernel.stack_bytes == 0) continue;
      return absl::InternalError(absl::StrCat(kernel.kernel, " keeps ", kernel.stack_bytes,
                                              " bytes in local memory\n", program.source));
    }
  }
  return program;
}

absl::Status CheckLowered(const Workload& canonical, const LoweredFunction& lowered, double tolerance) {
  return CheckFunction(canonical, WholeFunction(lowered), tolerance);
}

std::vector<absl::Status> CheckOnHost(const std::vector<ScheduledCase>& cases, double tolerance) {
  std::vector<absl::Status> results(cases.size());
  std::vector<HostUnit> units;
  std::vector<Emitted> emitted;
  for (size_t i = 0; i < cases.size(); ++i) {
    absl::StatusOr<Emitted> prepared = Prepare(cases[i], i, tolerance, &units);
    results[i] = prepared.status();
    if (prepared.ok()) emitted.push_back(*std::move(prepared));
  }
  const auto library = HostLibrary::Compile(units);
  if (!library.ok()) {
    for (const Emitted& e : emitted) results[e.at] = library.status();
    return results;
  }
  for (size_t u = 0; u < emitted.size(); ++u) {
    const Emitted& e = emitted[u];
    results[e.at] = Explained(
        CheckClose((*library)->Run(u, e.inputs), e.expected, tolerance, "emitted code"),
        absl::StrCat(cases[e.at].name, "\n", PrintLowered(units[u].lowered), units[u].program.source));
  }
  return results;
}

}  // namespace mycc
