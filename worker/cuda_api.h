// The functions of CUDA's driver that a GPU's runner uses, and NVML's that say how the GPU does. Both
// libraries are opened at run time, so that this program builds and starts without them, and says what it
// looked for when it needs them. Thread rule: functions are re-entrant; the tables are constant once opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mycc {

using CudaResult = int;  // 0: success
using CudaAddress = uint64_t;

struct CudaApi {
  // NotFound: no driver here; the message says what was looked for.
  static absl::StatusOr<const CudaApi*> Open();

  CudaResult (*GetErrorName)(CudaResult, const char**);
  CudaResult (*GetErrorString)(CudaResult, const char**);
  CudaResult (*Init)(unsigned flags);
  CudaResult (*DriverGetVersion)(int*);
  CudaResult (*DeviceGetCount)(int*);
  CudaResult (*DeviceGet)(int*, int ordinal);
  CudaResult (*DeviceGetName)(char*, int bytes, int device);
  CudaResult (*DeviceGetUuid)(unsigned char (*)[16], int device);
  CudaResult (*DeviceGetAttribute)(int*, int attribute, int device);
  CudaResult (*PrimaryCtxRetain)(void** context, int device);
  CudaResult (*CtxSetCurrent)(void* context);
  CudaResult (*MemGetInfo)(size_t* free, size_t* total);
  CudaResult (*MemAlloc)(CudaAddress*, size_t);
  CudaResult (*MemFree)(CudaAddress);
  CudaResult (*MemsetD8Async)(CudaAddress, unsigned char, size_t, void* stream);
  CudaResult (*MemcpyHtoDAsync)(CudaAddress, const void*, size_t, void* stream);
  CudaResult (*MemcpyDtoHAsync)(void*, CudaAddress, size_t, void* stream);
  CudaResult (*MemcpyDtoDAsync)(CudaAddress, CudaAddress, size_t, void* stream);
  CudaResult (*StreamCreate)(void** stream, unsigned flags);
  CudaResult (*StreamSynchronize)(void* stream);
  CudaResult (*StreamQuery)(void* stream);
  CudaResult (*StreamBeginCapture)(void* stream, int mode);
  CudaResult (*StreamEndCapture)(void* stream, void** graph);
  CudaResult (*GraphInstantiate)(void** exec, void* graph, unsigned long long flags);
  CudaResult (*GraphLaunch)(void* exec, void* stream);
  CudaResult (*GraphExecDestroy)(void* exec);
  CudaResult (*GraphDestroy)(void* graph);
  CudaResult (*EventCreate)(void** event, unsigned flags);
  CudaResult (*EventDestroy)(void* event);
  CudaResult (*EventRecordWithFlags)(void* event, void* stream, unsigned flags);
  CudaResult (*EventElapsedTime)(float* milliseconds, void* start, void* end);
  CudaResult (*ModuleLoadData)(void** module, const void* image);
  CudaResult (*ModuleGetFunction)(void** function, void* module, const char* name);
  CudaResult (*LaunchKernel)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned shared_bytes, void* stream, void** parameters, void** extra);

  // OK, or what `function` came to, by what it means for the caller: ResourceExhausted (no memory),
  // Unavailable (the device is gone or cannot be had: nobody's candidate did that), Aborted (the context is
  // broken, by what ran in it), Internal.
  absl::Status StatusOf(const char* function, CudaResult result) const;
};

}  // namespace mycc
