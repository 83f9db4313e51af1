// Compiles CUDA C++ to machine code by NVRTC, which is opened at run time: this program builds and starts
// without CUDA, and says what it looked for when it needs it. Thread rule: functions are re-entrant.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "codegen/cuda/program.h"
#include "codegen/target/target.h"

namespace mycc {

// Straight to machine code for the target's architecture, with what ptxas says of each kernel. Errors:
// NotFound (no NVRTC; the message lists the places), FailedPrecondition (an NVRTC that does not know the
// architecture), Internal with NVRTC's log (source that does not compile). REQUIRES: a CUDA target.
absl::StatusOr<CudaImage> CompileCuda(const std::string& source, const Target& target);

// The same source as PTX, for people.
absl::StatusOr<std::string> CompileToPtx(const std::string& source, const Target& target);

// "nvrtc-13.0", part of the code digest and of records. NotFound as above.
absl::StatusOr<std::string> CudaToolchain();

}  // namespace mycc
