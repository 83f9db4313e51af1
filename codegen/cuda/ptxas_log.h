// Parses ptxas's log: registers, spills and warnings of each kernel. Pure.
#pragma once

#include <string>

#include "codegen/cuda/program.h"

namespace mycc {

// Parses the output of `ptxas -v`: the resources of each kernel, and in `log` the remaining warnings. `cubin`
// stays empty.
CudaImage ReadPtxasLog(const std::string& log);

}  // namespace mycc
