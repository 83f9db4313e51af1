#include "codegen/artifact/cuda_library.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

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

// NVRTC compiles several programs at once, on as many threads as there are processors.
absl::StatusOr<CudaCode> CompilePrograms(const std::vector<CudaProgram>& programs, const Target& target) {
  std::vector<absl::StatusOr<CudaImage>> images(programs.size(), absl::UnknownError("not compiled"));
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < programs.size(); i = next++) images[i] = Compiled(programs[i], target);
  };
  std::vector<std::thread> threads;
  const size_t most = std::max(1U, std::thread::hardware_concurrency());
  for (size_t i = 1; i < std::min(most, programs.size()); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  std::vector<CudaUnit> units;
  for (size_t i = 0; i < programs.size(); ++i) {
    if (!images[i].ok()) return images[i].status();
    units.push_back({programs[i], *std::move(images[i])});
  }
  return CodeOf(std::move(units));
}

CudaCode CodeOf(std::vector<CudaUnit> units) {
  CudaCode code;
  code.units = std::move(units);
  for (const CudaUnit& unit : code.units) AddToReport(unit, &code.report);
  return code;
}

absl::StatusOr<SharedObject> LinkCudaPrograms(const LibrarySpec& spec, const std::vector<Entry>& entries,
                                              const std::vector<CudaProgram>& programs) {
  MYCC_ASSIGN_OR_RETURN(const CudaCode code, CompilePrograms(programs, spec.target));
  return LinkCudaCode(spec, entries, code);
}

absl::StatusOr<SharedObject> LinkCudaCode(const LibrarySpec& spec, const std::vector<Entry>& entries,
                                          const CudaCode& code) {
  SharedObject object;
  object.report = code.report;
  MYCC_ASSIGN_OR_RETURN(const std::string glue, EmitCudaGlue(spec, entries, code.units, LibraryJson(spec)));
  MYCC_ASSIGN_OR_RETURN(object.bytes,
                        LinkSharedObject({glue, CudaArtifactObject()}, ExportedSymbols(spec, entries),
                                         absl::StrCat(spec.module, ".so")));
  return object;
}

}  // namespace mycc
