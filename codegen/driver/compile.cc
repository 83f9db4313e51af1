#include "codegen/driver/compile.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/driver/reference_kernel.h"
#include "codegen/llvm/emit.h"
#include "codegen/schedule/schedule.h"
#include "codegen/workload/canonical.h"

namespace mycc {

namespace {

// The symbol of a kernel's code until a library gives it another.
constexpr char kSymbol[] = "kernel";

absl::Status LowerAndEmit(const Function& scheduled, const Target& target, KernelSpec* spec) {
  MYCC_ASSIGN_OR_RETURN(spec->lowered, Lower(scheduled, target));
  if (target.kind == TargetKind::kCpu) return absl::OkStatus();
  MYCC_ASSIGN_OR_RETURN(spec->program, EmitCuda(spec->lowered, target, kSymbol));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KernelSpec> CompileKernel(const Workload& workload, const Target& target, const Trace& trace) {
  MYCC_ASSIGN_OR_RETURN(const Schedule schedule, Replay(Canonicalize(workload), target, trace));
  return CompileScheduled(workload, target, trace, schedule.function());
}

absl::StatusOr<KernelSpec> CompileScheduled(const Workload& workload, const Target& target,
                                            const Trace& trace, const Function& scheduled) {
  KernelSpec spec;
  spec.workload = workload;
  spec.trace = trace;
  MYCC_RETURN_IF_ERROR(LowerAndEmit(scheduled, target, &spec));
  return spec;
}

absl::StatusOr<std::string> ToolchainOf(const Target& target) {
  if (target.kind == TargetKind::kCpu) return LlvmToolchain();
  return CudaToolchain();
}

absl::StatusOr<std::string> CodeDigestOf(const KernelSpec& kernel, const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const std::string toolchain, ToolchainOf(target));
  if (target.kind == TargetKind::kCpu) return CodeDigest(kernel.lowered, target, toolchain);
  return CodeDigest(kernel.lowered, target, absl::StrCat(toolchain, "\n", kernel.program.source));
}

absl::StatusOr<std::string> EmitText(const KernelSpec& kernel, const Target& target,
                                     const std::string& form) {
  const bool cuda = target.kind == TargetKind::kCuda;
  if (!cuda && (form == "llvm" || form == "asm")) {
    return EmitModule({{kernel.workload.name, kernel.lowered}}, target,
                      form == "llvm" ? EmitKind::kLlvmIr : EmitKind::kAssembly);
  }
  if (cuda && (form == "cuda" || form == "ptx")) {
    const CudaProgram program = WithSymbol(kernel.program, kernel.workload.name);
    if (form == "ptx") return CompileToPtx(program.source, target);
    return program.source;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "no `", form, "` for ", cuda ? "a GPU; expected cuda or ptx" : "a CPU; expected llvm or asm"));
}

absl::StatusOr<KernelSpec> CompileReference(const Workload& workload, const Target& target) {
  KernelSpec spec;
  spec.workload = workload;
  const Workload canonical = Canonicalize(workload);
  // On a GPU lowering binds the naive nests.
  const Function function = target.kind == TargetKind::kCuda ? BuildNaive(WidenReductions(canonical))
                                                             : ReferenceFunction(canonical);
  MYCC_RETURN_IF_ERROR(LowerAndEmit(function, target, &spec));
  return spec;
}

}  // namespace mycc
