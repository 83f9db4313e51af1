// The steps of a model on a GPU: those of each launch's kernel, with the arguments' addresses in the caller's
// tensors, the workspace and the weights. Pure.
#pragma once

#include <vector>

#include "codegen/artifact/glue.h"
#include "codegen/artifact/pack_weights.h"
#include "codegen/artifact/program_library.h"

namespace mycc {

// `programs` are those of the spec's kernels, under their final names. The workspace begins with the arena.
// REQUIRES: the program is one that GPUs compute, by CheckForGpu.
CudaModel CudaModelOf(const ProgramSpec& spec, const std::vector<CudaProgram>& programs,
                      const WeightLayout& weights);

}  // namespace mycc
