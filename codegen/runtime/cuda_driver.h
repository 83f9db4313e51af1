// Opens NVIDIA's driver at run time, with the functions that mycc's programs use to run kernels. A program
// starts without a driver; only using a GPU without one is an error. Thread rule: functions are re-entrant; a
// table is constant once loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "codegen/runtime/artifact/cuda_driver_functions.h"

namespace mycc {

// Driver functions, named without the prefix "cu".
struct CudaDriver {
  // This machine's driver, loaded at the first call. Errors: those of Load().
  static absl::StatusOr<const CudaDriver*> Open();
  // Loads and initializes the driver library at this path. NotFound when it is missing, too old, or has no
  // usable device; the message says what was looked for.
  static absl::StatusOr<CudaDriver> Load(const std::string& library);

  // OK, or the error of `call`: "cuMemAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY)". The code says what it
  // means for the caller: ResourceExhausted (no memory), Unavailable (the device is lost or not available; no
  // kernel caused it), Aborted (a kernel broke the context), else Internal.
  absl::Status StatusOf(absl::string_view call, CuResult result) const;

  MYCC_CUDA_OF_BOTH(MYCC_CUDA_MEMBER)
  MYCC_CUDA_OF_PROGRAMS(MYCC_CUDA_MEMBER)
};

// MYCC_CUDA(driver, MemFree, address): calls the function; on failure returns its error from the caller.
#define MYCC_CUDA(driver, function, ...) \
  MYCC_RETURN_IF_ERROR((driver)->StatusOf("cu" #function, (driver)->function(__VA_ARGS__)))

}  // namespace mycc
