#include "tests/cuda/emitted.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/schedule/schedule.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

Target Preset(const char* name) {
  absl::StatusOr<Target> target = ParseTarget(name);
  MYCC_CHECK(target.ok()) << std::string(target.status().message());
  return *std::move(target);
}

}  // namespace

Target Sm80() { return Preset("a100"); }
Target Sm90a() { return Preset("h200"); }

absl::StatusOr<LoweredFunction> LowerForGpu(const Workload& canonical, const std::string& steps,
                                            const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(absl::StrCat("v1\n", steps)));
  MYCC_ASSIGN_OR_RETURN(const Schedule schedule, Replay(canonical, target, trace));
  return Lower(schedule.function(), target);
}

absl::StatusOr<CudaProgram> EmitChecked(const std::string& workload, const std::string& steps) {
  const Workload canonical = CanonicalWorkload(workload);
  CudaProgram program;
  for (const Target& target : {Sm80(), Sm90a()}) {
    MYCC_ASSIGN_OR_RETURN(const LoweredFunction lowered, LowerForGpu(canonical, steps, target));
    MYCC_ASSIGN_OR_RETURN(program, EmitCuda(lowered, target, "k"));
    const absl::StatusOr<CudaImage> image = CompileCuda(program.source, target);
    if (!image.ok()) return absl::InternalError(absl::StrCat(image.status().message(), "\n", program.source));
    for (const CudaKernelResources& kernel : image->kernels) {
      if (kernel.spill_bytes == 0 && kernel.stack_bytes == 0) continue;
      return absl::InternalError(absl::StrCat(kernel.kernel, " keeps ", kernel.stack_bytes,
                                              " bytes in local memory\n", program.source));
    }
  }
  return program;
}

}  // namespace mycc
