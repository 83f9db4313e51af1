// Packs the constants of a model for the kernels that read them, when the model is compiled: into the layouts
// that the schedules chose. The packing code runs here, on any x86-64, whatever the target is.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/driver/kernel_spec.h"
#include "codegen/program/program.h"

namespace mycc {

// The offsets of what the launches read in the block of weights.
struct WeightLayout {
  // For each launch and each of its tensors: the offset in bytes; -1 for those that are no constants.
  std::vector<std::vector<int64_t>> offsets;
  int64_t bytes = 0;
};
WeightLayout LayOutWeights(const ModelProgram& program, const std::vector<KernelSpec>& kernels);

// Writes the object file `path` whose symbol `symbol` is the block of weights. Lets go of the program's
// constants as they are done.
absl::Status WriteWeights(ModelProgram* program, const std::vector<KernelSpec>& kernels,
                          const WeightLayout& layout, const std::string& symbol, const std::string& path);

}  // namespace mycc
