// The runtime inside an artifact for GPUs: its tables, and the functions between a call and the kernel
// launches. Plain C over libc; libcuda.so.1 is opened at the first call.
//
// A call uses the caller's current context if that belongs to the tensors' device, else the device's primary
// context. It only enqueues on the caller's stream. The first call or MODULE_prepare does everything else
// (loads the code into the context, allocates a workspace, checks packed buffers), so that later calls
// allocate nothing, do not wait, and can be captured into a CUDA graph.
//
// Thread rule: the tables are constant; every function may be called from several threads at once.
#pragma once

#include "codegen/runtime/artifact/artifact.h"
#include "codegen/runtime/artifact/cuda_driver_functions.h"

#ifdef __cplusplus
extern "C" {
#endif

// All fields of the tables are 8 bytes wide, so that their layout needs no padding rules.

// An address: an offset in bytes into an argument, into the workspace (argument -1), or into the weights of a
// model (argument -2).
struct MyccCudaOperand {
  int64_t argument, offset;
};

// A TMA descriptor; see CudaTensorMap in codegen/cuda/program.h. `type` and `swizzle` are the driver's
// numbers.
struct MyccCudaMap {
  struct MyccCudaOperand operand;
  int64_t type, rank;
  const uint64_t* dims;
  const uint64_t* strides;
  const uint32_t* box;
  const uint32_t* element_strides;
  int64_t swizzle;
};

// A launch of a kernel, by its number.
struct MyccCudaStep {
  int64_t kernel;
  int64_t grid[3];
  int64_t cluster, threads, shared_bytes;
  int64_t waits;  // the kernel itself waits for the end of the step before: the two may overlap
  int64_t num_maps;
  const struct MyccCudaMap* maps;
  int64_t num_pointers;
  const struct MyccCudaOperand* pointers;
};

struct MyccCudaEntry {
  struct MyccSignature signature;
  int64_t num_steps;
  const struct MyccCudaStep* steps;
  int64_t uses_workspace;
};

struct MyccCudaImage {
  const void* code;  // a cubin
};

struct MyccCudaKernel {
  const char* name;
  int64_t image;
  int64_t shared_bytes;  // dynamic, the maximum over its launches
  int64_t any_cluster;   // a launch has clusters of more than 8 blocks, which the kernel must permit
};

// The handles of the loaded code, one for each image and kernel.
struct MyccCudaHandles {
  CuLibrary* libraries;
  CuKernel* kernels;
};

struct MyccCudaModule {
  const char* name;
  const char* target;         // canonical text, for messages
  int64_t arch;               // 90 for sm_90
  int64_t arch_specific;      // the code runs on this architecture alone
  int64_t most_shared_bytes;  // for a block, static and dynamic, the maximum over all kernels
  int64_t workspace_bytes;    // the maximum over all functions
  int64_t num_images;
  const struct MyccCudaImage* images;
  int64_t num_kernels;
  const struct MyccCudaKernel* kernels;
  int64_t num_entries;
  const struct MyccCudaEntry* entries;
  struct MyccCudaHandles handles;
  const uint8_t* weights;  // of a model, which loading copies to the device; NULL without any
  int64_t weight_bytes;
};

// This artifact's module; written by the code generator.
extern const struct MyccCudaModule mycc_cuda_module;

// The functions behind the exported symbols, besides MyccLastError. They return 0, or 1 after setting the
// thread's error text.
int32_t MyccCudaCall(const struct MyccCudaEntry* entry, DLTensor** args, int32_t num_args, void* stream);
int32_t MyccCudaPrepare(int32_t device_id);

// cuda_driver.c: the functions of libcuda.so.1, without their prefix "cu".
struct MyccCudaDriver {
  MYCC_CUDA_OF_BOTH(MYCC_CUDA_MEMBER)
  MYCC_CUDA_OF_ARTIFACTS(MYCC_CUDA_MEMBER)
};
// Opens and initializes the driver once. NULL after setting the error text, which says what was looked for.
const struct MyccCudaDriver* MyccCudaOpen(void);
// The driver if an earlier call has opened it, else NULL.
const struct MyccCudaDriver* MyccCudaOpened(void);
// Sets the error text: "m: cuMemAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY)"; returns 1.
int32_t MyccCudaFail(const struct MyccCudaDriver* driver, const char* function, CuResult result);
// MYCC_TRY(scope, MemFree, address): calls the driver, and returns from the function when it fails.
#define MYCC_TRY(scope, function, ...)                                                          \
  do {                                                                                          \
    const CuResult result_ = (scope)->driver->function(__VA_ARGS__);                            \
    if (result_ != kCudaSuccess) return MyccCudaFail((scope)->driver, "cu" #function, result_); \
  } while (0)

// The lock for state that calls share. It is held briefly, never while kernels are launched.
void MyccLock(void);
void MyccUnlock(void);

// cuda_context.c: the context that a call uses.
struct MyccCudaScope {
  const struct MyccCudaDriver* driver;
  CuContext context;
  unsigned long long context_id;  // unique in the process, unlike a context's address
  int32_t device_id;
  CuDevice device;
  int pushed;
  CuAddress weights;  // once the code is loaded
};
int32_t MyccCudaEnter(int32_t device_id, struct MyccCudaScope* scope);
void MyccCudaLeave(const struct MyccCudaScope* scope);
// Whether the code is loaded in the context; and loads it. Both say where the weights are. Loading is not
// allowed while a stream is captured.
int MyccCudaIsLoaded(struct MyccCudaScope* scope);
int32_t MyccCudaLoad(struct MyccCudaScope* scope);
// Between these two, the thread may make calls that are otherwise forbidden while one of its streams is
// captured.
int MyccCudaRelax(const struct MyccCudaDriver* driver);
void MyccCudaRestore(const struct MyccCudaDriver* driver, int mode);
// The graph into which `stream` is being captured, with the number of the capture; NULL and 0 without a
// capture.
struct MyccCudaCapture {
  CuGraph graph;
  uint64_t id;
};
int32_t MyccCudaCaptureOf(const struct MyccCudaScope* scope, CuStream stream,
                          struct MyccCudaCapture* capture);

// cuda_workspace.c: memory for the intermediates of calls on `stream`, mycc_cuda_module.workspace_bytes
// bytes.
int32_t MyccCudaWorkspace(const struct MyccCudaScope* scope, CuStream stream, CuAddress* address);
// Makes sure that a spare workspace exists, for a stream that has none yet.
int32_t MyccCudaSpareWorkspace(const struct MyccCudaScope* scope);

// cuda_maps.c: makes the descriptor of `map` for the tensor at `address`.
int32_t MyccCudaEncodeMap(const struct MyccCudaScope* scope, const struct MyccCudaMap* map, CuAddress address,
                          struct CuTensorMapBits* bits);

// cuda_packed.c: checks the headers of packed buffers among the inputs; and writes the headers of those that
// FUNC_pack has filled.
int32_t MyccCudaCheckPacked(const struct MyccCudaScope* scope, CuStream stream,
                            const struct MyccSignature* signature, void* const* data);
int32_t MyccCudaWriteHeaders(const struct MyccCudaScope* scope, CuStream stream,
                             const struct MyccSignature* signature, void* const* data);

#ifdef __cplusplus
}
#endif
