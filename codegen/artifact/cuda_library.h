// Makes a library for a GPU from CUDA programs: NVRTC compiles them, and the machine code is embedded and
// linked. Thread rule: functions are re-entrant.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/artifact/entry.h"
#include "codegen/artifact/glue.h"
#include "codegen/cuda/program.h"

namespace mycc {

struct SharedObject {
  std::string bytes;
  BuildReport report;
};

// The machine code of programs, and a report over all.
struct CudaCode {
  std::vector<CudaUnit> units;
  BuildReport report;
};
absl::StatusOr<CudaCode> CompilePrograms(const std::vector<CudaProgram>& programs, const Target& target);
// The same of programs that were compiled before, perhaps elsewhere.
CudaCode CodeOf(std::vector<CudaUnit> units);

// `programs` has one program for each kernel of the spec, in the same order. REQUIRES: a CUDA target. Errors:
// those of CompileCuda (cuda/nvrtc.h).
absl::StatusOr<SharedObject> LinkCudaPrograms(const LibrarySpec& spec, const std::vector<Entry>& entries,
                                              const std::vector<CudaProgram>& programs);
// The same with their machine code.
absl::StatusOr<SharedObject> LinkCudaCode(const LibrarySpec& spec, const std::vector<Entry>& entries,
                                          const CudaCode& code);

}  // namespace mycc
