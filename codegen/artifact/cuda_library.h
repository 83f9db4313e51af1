// A library for a GPU from CUDA programs: compiled by NVRTC, embedded, linked.
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
