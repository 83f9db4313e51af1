// The types, constants and struct layouts of CUDA's driver API (libcuda.so.1, since CUDA 12.0) that artifacts
// use. Declared here so that mycc can be built without CUDA.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int CuResult;  // 0: success
typedef int CuDevice;
typedef uintptr_t CuAddress;
// Handles.
typedef struct CuContextState* CuContext;
typedef struct CuStreamState* CuStream;
typedef struct CuLibraryState* CuLibrary;
typedef struct CuKernelState* CuKernel;
typedef struct CuFunctionState* CuFunction;
typedef struct CuGraphState* CuGraph;
typedef struct CuUserObjectState* CuUserObject;
typedef struct CuModuleState* CuModule;
typedef struct CuEventState* CuEvent;
typedef struct CuGraphExecState* CuGraphExec;

enum {
  kCudaSuccess = 0,
  kCudaErrorOutOfMemory = 2,
  kCudaErrorNotReady = 600,

  kCudaDeviceMultiprocessors = 16,
  kCudaDeviceL2Bytes = 38,
  kCudaDeviceMajor = 75,
  kCudaDeviceMinor = 76,
  kCudaDeviceMaxSharedBytes = 97,  // the most that a block may ask for

  kCudaFunctionMaxDynamicSharedBytes = 8,
  kCudaFunctionAnyClusterSize = 14,

  kCudaPointerBufferId = 7,

  kCudaCaptureNone = 0,         // status of a stream
  kCudaCaptureThreadLocal = 1,  // modes of a capture and of a thread
  kCudaCaptureRelaxed = 2,

  kCudaStreamNonBlocking = 1,
  kCudaEventRecordExternal = 1,

  // Ids of launch attributes.
  kCudaLaunchCluster = 4,
  kCudaLaunchOverlap = 6,  // programmatic stream serialization

  kCudaUserObjectNoSync = 1,
  kCudaGraphUserObjectMove = 1,

  kCudaMapU8 = 0,
  kCudaMapU16 = 1,
  kCudaMapU32 = 2,
  kCudaMapI32 = 3,
  kCudaMapU64 = 4,
  kCudaMapI64 = 5,
  kCudaMapF16 = 6,
  kCudaMapF32 = 7,
  kCudaMapF64 = 8,
  kCudaMapBF16 = 9,
  kCudaMapPromote128 = 2,  // L2 fetches 128 bytes at a time
};

// The thread's current streams when no handle is given: the default one, and the one of each thread.
#define kCudaStreamPerThread ((CuStream)2)

struct CuTensorMapBits {
  uint64_t opaque[16];
} __attribute__((aligned(128)));

struct CuLaunchAttribute {
  int32_t id;
  int32_t padding;
  union {
    uint32_t cluster[3];
    int32_t overlap;
    uint8_t bytes[64];
  } value;
};

struct CuLaunchConfig {
  uint32_t grid[3], block[3];
  uint32_t shared_bytes;
  CuStream stream;
  const struct CuLaunchAttribute* attributes;
  uint32_t num_attributes;
};

#ifdef __cplusplus
}
#endif
