// Makes the object file that connects kernels with the artifact runtime: the tables that describe a library's
// functions, and the exported symbols, each a jump into the runtime with its table. It runs on the
// oldest x86-64.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/artifact/entry.h"
#include "codegen/cuda/program.h"

namespace mycc {

// `json` is what MODULE_json() returns, here and below. REQUIRES: a CPU target.
absl::StatusOr<std::string> EmitGlue(const LibrarySpec& spec, const std::vector<Entry>& entries,
                                     const std::string& json);

// One kernel of the library on a GPU, in the order of the spec's kernels.
struct CudaUnit {
  CudaProgram program;
  CudaImage image;
};

// REQUIRES: a CUDA target. Internal when a step names a kernel that its image does not have.
absl::StatusOr<std::string> EmitCudaGlue(const LibrarySpec& spec, const std::vector<Entry>& entries,
                                         const std::vector<CudaUnit>& units, const std::string& json);

}  // namespace mycc
