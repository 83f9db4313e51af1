// Compiles CUDA C++ to machine code with NVRTC, which is opened at run time: mycc builds and starts without
// CUDA. Thread rule: functions are re-entrant.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "codegen/cuda/program.h"
#include "codegen/target/target.h"

namespace mycc {

// Compiles to machine code for the target's architecture, with ptxas's report on each kernel. Errors:
// NotFound when there is no NVRTC (the message lists the places searched); FailedPrecondition when NVRTC does
// not know the architecture; Internal with NVRTC's log when the source does not compile. REQUIRES: a CUDA
// target.
absl::StatusOr<CudaImage> CompileCuda(const std::string& source, const Target& target);

// Compiles to PTX, for reading.
absl::StatusOr<std::string> CompileToPtx(const std::string& source, const Target& target);

// Parses the output of `ptxas -v` (ptxas_log.cc): the resources of each kernel, and in `log` the remaining
// warnings. `cubin` stays empty.
CudaImage ReadPtxasLog(const std::string& log);

// "nvrtc-13.0", a part of the code digest and of records. NotFound as above.
absl::StatusOr<std::string> CudaToolchain();

}  // namespace mycc
