#include "codegen/artifact/cuda_library.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/artifact/describe.h"
#include "codegen/artifact/glue.h"
#include "codegen/artifact/link.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/ir/debug.h"
#include "codegen/runtime/artifact/embed.h"

namespace mycc {
namespace {

void AddToReport(const CudaUnit& unit, BuildReport* report) {
  for (const CudaKernelResources& kernel : unit.image.kernels) {
    int64_t dynamic_bytes = 0;
    for (const auto* steps : {&unit.program.call, &unit.program.pack}) {
      for (const CudaStep& step : *steps) {
        if (step.kernel == kernel.kernel) dynamic_bytes = std::max(dynamic_bytes, step.shared_bytes);
      }
    }
    report->registers = std::max(report->registers, kernel.registers);
    report->spill_bytes = std::max(report->spill_bytes, kernel.spill_bytes);
    report->shared_bytes = std::max(report->shared_bytes, kernel.shared_bytes + dynamic_bytes);
    if (kernel.spill_bytes > 0) {
      absl::StrAppend(&report->log, kernel.kernel, ": a thread spills ", kernel.spill_bytes, " bytes of its ",
                      kernel.registers, " registers to memory\n");
    }
  }
  report->serialized_wgmma |= unit.image.serialized_wgmma;
  report->ignored_setmaxnreg |= unit.image.ignored_setmaxnreg;
  report->log += unit.image.log;
}

absl::StatusOr<CudaImage> Compiled(const CudaProgram& program, const Target& target) {
  const TimedStep timed("nvrtc", [&] { return program.symbol; });
  return CompileCuda(program.source, target);
}

}  // namespace

absl::StatusOr<SharedObject> LinkCudaPrograms(const LibrarySpec& spec, const std::vector<Entry>& entries,
                                              const std::vector<CudaProgram>& programs) {
  SharedObject object;
  std::vector<CudaUnit> units;
  for (const CudaProgram& program : programs) {
    MYCC_ASSIGN_OR_RETURN(CudaImage image, Compiled(program, spec.target));
    units.push_back({program, std::move(image)});
    AddToReport(units.back(), &object.report);
  }
  MYCC_ASSIGN_OR_RETURN(const std::string glue, EmitCudaGlue(spec, entries, units, LibraryJson(spec)));
  MYCC_ASSIGN_OR_RETURN(object.bytes,
                        LinkSharedObject({glue, CudaArtifactObject()}, ExportedSymbols(spec, entries),
                                         absl::StrCat(spec.module, ".so")));
  return object;
}

}  // namespace mycc
