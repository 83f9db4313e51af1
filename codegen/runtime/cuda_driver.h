// Opens NVIDIA's driver at run time, and declares the driver functions that mycc's programs use to run
// kernels. A program starts without a driver; only using a GPU without one is an error. Artifacts have a
// table of their own, in C. Thread rule: functions are re-entrant; a table is constant once loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "codegen/runtime/artifact/cuda_driver_types.h"

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

  CuResult (*GetErrorName)(CuResult, const char**);
  CuResult (*GetErrorString)(CuResult, const char**);
  CuResult (*Init)(unsigned flags);
  CuResult (*DriverGetVersion)(int*);
  CuResult (*DeviceGetCount)(int*);
  CuResult (*DeviceGet)(CuDevice*, int ordinal);
  CuResult (*DeviceGetName)(char*, int size, CuDevice);
  CuResult (*DeviceGetUuid)(unsigned char (*)[16], CuDevice);
  CuResult (*DeviceGetPCIBusId)(char*, int size, CuDevice);
  CuResult (*DeviceGetAttribute)(int*, int attribute, CuDevice);
  CuResult (*DeviceTotalMem)(size_t*, CuDevice);
  CuResult (*DevicePrimaryCtxRetain)(CuContext*, CuDevice);
  CuResult (*DevicePrimaryCtxRelease)(CuDevice);
  CuResult (*CtxPushCurrent)(CuContext);
  CuResult (*CtxPopCurrent)(CuContext*);
  CuResult (*CtxSynchronize)();
  CuResult (*MemGetInfo)(size_t* free, size_t* total);
  CuResult (*MemAlloc)(CuAddress*, size_t bytes);
  CuResult (*MemFree)(CuAddress);
  CuResult (*MemsetD8Async)(CuAddress, unsigned char value, size_t bytes, CuStream);
  CuResult (*MemcpyHtoD)(CuAddress, const void*, size_t bytes);
  CuResult (*MemcpyDtoH)(void*, CuAddress, size_t bytes);
  CuResult (*MemcpyHtoDAsync)(CuAddress, const void*, size_t bytes, CuStream);
  CuResult (*MemcpyDtoHAsync)(void*, CuAddress, size_t bytes, CuStream);
  CuResult (*MemcpyDtoDAsync)(CuAddress to, CuAddress from, size_t bytes, CuStream);
  CuResult (*StreamCreate)(CuStream*, unsigned flags);
  CuResult (*StreamDestroy)(CuStream);
  CuResult (*StreamSynchronize)(CuStream);
  CuResult (*StreamQuery)(CuStream);
  CuResult (*StreamBeginCapture)(CuStream, int mode);
  CuResult (*StreamEndCapture)(CuStream, CuGraph*);
  CuResult (*GraphInstantiate)(CuGraphExec*, CuGraph, unsigned long long flags);
  CuResult (*GraphLaunch)(CuGraphExec, CuStream);
  CuResult (*GraphDestroy)(CuGraph);
  CuResult (*GraphExecDestroy)(CuGraphExec);
  CuResult (*EventCreate)(CuEvent*, unsigned flags);
  CuResult (*EventDestroy)(CuEvent);
  CuResult (*EventRecordWithFlags)(CuEvent, CuStream, unsigned flags);
  CuResult (*EventElapsedTime)(float* milliseconds, CuEvent begin, CuEvent end);
  CuResult (*ModuleLoadData)(CuModule*, const void* image);
  CuResult (*ModuleGetFunction)(CuFunction*, CuModule, const char* name);
  CuResult (*LaunchKernel)(CuFunction, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                           unsigned block_y, unsigned block_z, unsigned shared_bytes, CuStream, void** params,
                           void** extra);
};

// MYCC_CUDA(driver, MemFree, address): calls the function; on failure returns its error from the caller.
#define MYCC_CUDA(driver, function, ...) \
  MYCC_RETURN_IF_ERROR((driver)->StatusOf("cu" #function, (driver)->function(__VA_ARGS__)))

}  // namespace mycc
