// Parses ptxas's log: registers, spills and warnings of each kernel. Pure.
#pragma once

#include <string>

#include "codegen/cuda/program.h"

namespace mycc {

// The log of `ptxas -v`: the resources of each kernel, and the warnings in `log`, without what was read from
// them. `cubin` stays empty.
CudaImage ReadPtxasLog(const std::string& log);

}  // namespace mycc
