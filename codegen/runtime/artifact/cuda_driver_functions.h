// The functions of CUDA's driver (libcuda.so.1, since CUDA 12.0) that artifacts and mycc's programs call: the
// only list of them. ROW(MemAlloc, "_v2", (...)) is cuMemAlloc, which the library exports as cuMemAlloc_v2.
// Both callers open those that they use, and a function that the driver lacks is their error.
#pragma once

#include <stddef.h>

#include "codegen/runtime/artifact/cuda_driver_types.h"

#define MYCC_CUDA_OF_BOTH(ROW)                                                  \
  ROW(GetErrorName, "", (CuResult, const char**))                               \
  ROW(GetErrorString, "", (CuResult, const char**))                             \
  ROW(Init, "", (unsigned flags))                                               \
  ROW(DeviceGet, "", (CuDevice*, int ordinal))                                  \
  ROW(DeviceGetCount, "", (int*))                                               \
  ROW(DeviceGetName, "", (char*, int size, CuDevice))                           \
  ROW(DeviceGetAttribute, "", (int*, int attribute, CuDevice))                  \
  ROW(DevicePrimaryCtxRetain, "", (CuContext*, CuDevice))                       \
  ROW(DevicePrimaryCtxRelease, "_v2", (CuDevice))                               \
  ROW(CtxPushCurrent, "_v2", (CuContext))                                       \
  ROW(CtxPopCurrent, "_v2", (CuContext*))                                       \
  ROW(MemAlloc, "_v2", (CuAddress*, size_t bytes))                              \
  ROW(MemFree, "_v2", (CuAddress))                                              \
  ROW(MemcpyHtoDAsync, "_v2", (CuAddress, const void*, size_t bytes, CuStream)) \
  ROW(MemcpyDtoHAsync, "_v2", (void*, CuAddress, size_t bytes, CuStream))       \
  ROW(StreamSynchronize, "", (CuStream))

#define MYCC_CUDA_OF_ARTIFACTS(ROW)                                                                   \
  ROW(CtxGetCurrent, "", (CuContext*))                                                                \
  ROW(CtxGetDevice, "", (CuDevice*))                                                                  \
  ROW(CtxGetId, "", (CuContext, unsigned long long*))                                                 \
  ROW(LibraryLoadData, "",                                                                            \
      (CuLibrary*, const void* code, void* jit_options, void** jit_values, unsigned num_jit_options,  \
       void* options, void** values, unsigned num_options))                                           \
  ROW(LibraryUnload, "", (CuLibrary))                                                                 \
  ROW(LibraryGetKernel, "", (CuKernel*, CuLibrary, const char* name))                                 \
  ROW(KernelGetFunction, "", (CuFunction*, CuKernel))                                                 \
  ROW(KernelSetAttribute, "", (int attribute, int value, CuKernel, CuDevice))                         \
  ROW(LaunchKernelEx, "", (const struct CuLaunchConfig*, CuFunction, void** params, void** extra))    \
  ROW(TensorMapEncodeTiled, "",                                                                       \
      (struct CuTensorMapBits*, int type, uint32_t rank, void* address, const uint64_t* dims,         \
       const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides, int interleave, \
       int swizzle, int l2_promotion, int out_of_bounds))                                             \
  ROW(PointerGetAttribute, "", (void*, int attribute, CuAddress))                                     \
  ROW(StreamGetCaptureInfo, "_v2",                                                                    \
      (CuStream, int* status, uint64_t* id, CuGraph*, const void** nodes, size_t* num_nodes))         \
  ROW(ThreadExchangeStreamCaptureMode, "", (int* mode))                                               \
  ROW(UserObjectCreate, "",                                                                           \
      (CuUserObject*, void* object, void (*destroy)(void*), unsigned references, unsigned flags))     \
  ROW(GraphRetainUserObject, "", (CuGraph, CuUserObject, unsigned references, unsigned flags))

#define MYCC_CUDA_OF_PROGRAMS(ROW)                                                                        \
  ROW(DriverGetVersion, "", (int*))                                                                       \
  ROW(DeviceGetUuid, "_v2", (unsigned char(*)[16], CuDevice))                                             \
  ROW(DeviceGetPCIBusId, "", (char*, int size, CuDevice))                                                 \
  ROW(DeviceTotalMem, "_v2", (size_t*, CuDevice))                                                         \
  ROW(CtxSynchronize, "", (void))                                                                         \
  ROW(MemGetInfo, "_v2", (size_t * free, size_t * total))                                                 \
  ROW(MemsetD8Async, "", (CuAddress, unsigned char value, size_t bytes, CuStream))                        \
  ROW(MemcpyHtoD, "_v2", (CuAddress, const void*, size_t bytes))                                          \
  ROW(MemcpyDtoH, "_v2", (void*, CuAddress, size_t bytes))                                                \
  ROW(MemcpyDtoDAsync, "_v2", (CuAddress to, CuAddress from, size_t bytes, CuStream))                     \
  ROW(StreamCreate, "", (CuStream*, unsigned flags))                                                      \
  ROW(StreamDestroy, "_v2", (CuStream))                                                                   \
  ROW(StreamQuery, "", (CuStream))                                                                        \
  ROW(StreamBeginCapture, "_v2", (CuStream, int mode))                                                    \
  ROW(StreamEndCapture, "", (CuStream, CuGraph*))                                                         \
  ROW(GraphInstantiate, "WithFlags", (CuGraphExec*, CuGraph, unsigned long long flags))                   \
  ROW(GraphLaunch, "", (CuGraphExec, CuStream))                                                           \
  ROW(GraphDestroy, "", (CuGraph))                                                                        \
  ROW(GraphExecDestroy, "", (CuGraphExec))                                                                \
  ROW(EventCreate, "", (CuEvent*, unsigned flags))                                                        \
  ROW(EventDestroy, "_v2", (CuEvent))                                                                     \
  ROW(EventRecordWithFlags, "", (CuEvent, CuStream, unsigned flags))                                      \
  ROW(EventElapsedTime, "", (float* milliseconds, CuEvent begin, CuEvent end))                            \
  ROW(ModuleLoadData, "", (CuModule*, const void* image))                                                 \
  ROW(ModuleGetFunction, "", (CuFunction*, CuModule, const char* name))                                   \
  ROW(LaunchKernel, "",                                                                                   \
      (CuFunction, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared_bytes, CuStream, void** params, void** extra))

// The rows as members of a struct, and as the names that the library exports.
#define MYCC_CUDA_MEMBER(name, suffix, parameters) CuResult(*name) parameters;
#define MYCC_CUDA_NAME(name, suffix, parameters) "cu" #name suffix,
