// Makes the object file that connects kernels with the artifact runtime: tables that describe a library's
// functions, and the exported symbols, each a jump into the runtime with its table. The code runs on every
// x86-64. Thread rule: functions are re-entrant.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/artifact/entry.h"
#include "codegen/cuda/program.h"

namespace mycc {

// `json`, here and below, is the text that MODULE_json() returns. REQUIRES: a CPU target.
absl::StatusOr<std::string> EmitGlue(const LibrarySpec& spec, const std::vector<Entry>& entries,
                                     const std::string& json);

// The same into a module that has more: the tables and exported functions of a CPU library.
class GlueModule;
absl::Status DefineCpuModule(const LibrarySpec& spec, const std::vector<Entry>& entries,
                             const std::string& json, GlueModule* out);

// One kernel of a library for a GPU. EmitCudaGlue takes them in the order of the spec's kernels.
struct CudaUnit {
  CudaProgram program;
  CudaImage image;
};

// A model for a GPU: the steps of all its launches, in their order, and its weights.
struct CudaModel {
  std::vector<CudaStep> steps;
  int64_t workspace_bytes = 0;
  std::string weights_symbol;
  int64_t weight_bytes = 0;
};

// With `model` the only entry runs that. REQUIRES: a CUDA target. Internal when a step names a kernel that
// its image does not have.
absl::StatusOr<std::string> EmitCudaGlue(const LibrarySpec& spec, const std::vector<Entry>& entries,
                                         const std::vector<CudaUnit>& units, const std::string& json,
                                         const CudaModel* model = nullptr);

}  // namespace mycc
