// Makes a library for a GPU from CUDA programs: NVRTC compiles them, and the code is embedded and linked.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/artifact/entry.h"
#include "codegen/cuda/program.h"

namespace mycc {

struct SharedObject {
  std::string bytes;
  BuildReport report;
};

// One program for each kernel of the spec, in its order. REQUIRES: a CUDA target. Errors: those of NVRTC.
absl::StatusOr<SharedObject> LinkCudaPrograms(const LibrarySpec& spec, const std::vector<Entry>& entries,
                                              const std::vector<CudaProgram>& programs);

}  // namespace mycc
