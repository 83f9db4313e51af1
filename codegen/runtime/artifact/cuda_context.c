// Finds the CUDA context of a call, and loads the module's code into it once.
#include <stdio.h>
#include <stdlib.h>

#include "codegen/runtime/artifact/cuda_artifact.h"

enum { kMaxDevices = 64 };
// Primary contexts retained for calls without a current context; under the lock.
static CuContext primary[kMaxDevices];

// The contexts in which the code is loaded; entries are added at the head and stay.
struct Ready {
  struct Ready* next;
  unsigned long long context_id;
  CuAddress weights;
};
static struct Ready* ready;  // accessed atomically
static int is_loaded;        // under the lock

static int32_t RetainPrimary(struct MyccCudaScope* scope) {
  if (scope->device < 0 || scope->device >= kMaxDevices)
    return MyccFail("%s: device %d; expected at most %d devices", mycc_cuda_module.name, scope->device_id,
                    kMaxDevices);
  MyccLock();
  CuResult result = kCudaSuccess;
  if (primary[scope->device] == NULL)
    result = scope->driver->DevicePrimaryCtxRetain(&primary[scope->device], scope->device);
  scope->context = primary[scope->device];
  MyccUnlock();
  return result == kCudaSuccess ? 0 : MyccCudaFail(scope->driver, "cuDevicePrimaryCtxRetain", result);
}

static int32_t FindDevice(struct MyccCudaScope* scope) {
  if (scope->driver->DeviceGet(&scope->device, scope->device_id) == kCudaSuccess) return 0;
  int count = 0;
  MYCC_TRY(scope, DeviceGetCount, &count);
  return MyccFail("%s: device %d; this process has %d CUDA devices, numbered from 0", mycc_cuda_module.name,
                  scope->device_id, count);
}

int32_t MyccCudaEnter(int32_t device_id, struct MyccCudaScope* scope) {
  scope->driver = MyccCudaOpen();
  if (scope->driver == NULL) return 1;
  scope->device_id = device_id;
  scope->pushed = 0;
  if (FindDevice(scope) != 0) return 1;
  MYCC_TRY(scope, CtxGetCurrent, &scope->context);
  CuDevice current = -1;
  if (scope->context != NULL) MYCC_TRY(scope, CtxGetDevice, &current);
  if (scope->context == NULL || current != scope->device) {
    if (RetainPrimary(scope) != 0) return 1;
    MYCC_TRY(scope, CtxPushCurrent, scope->context);
    scope->pushed = 1;
  }
  const CuResult result = scope->driver->CtxGetId(scope->context, &scope->context_id);
  if (result == kCudaSuccess) return 0;
  MyccCudaLeave(scope);
  return MyccCudaFail(scope->driver, "cuCtxGetId", result);
}

void MyccCudaLeave(const struct MyccCudaScope* scope) {
  CuContext popped;
  if (scope->pushed) scope->driver->CtxPopCurrent(&popped);
}

int MyccCudaRelax(const struct MyccCudaDriver* driver) {
  int mode = kCudaCaptureRelaxed;
  driver->ThreadExchangeStreamCaptureMode(&mode);
  return mode;
}

void MyccCudaRestore(const struct MyccCudaDriver* driver, int mode) {
  driver->ThreadExchangeStreamCaptureMode(&mode);
}

int32_t MyccCudaCaptureOf(const struct MyccCudaScope* scope, CuStream stream,
                          struct MyccCudaCapture* capture) {
  int status = kCudaCaptureNone;
  capture->graph = NULL;
  capture->id = 0;
  MYCC_TRY(scope, StreamGetCaptureInfo, stream, &status, &capture->id, &capture->graph, NULL, NULL);
  if (status == kCudaCaptureNone) {
    capture->graph = NULL;
    capture->id = 0;
  }
  return 0;
}

// Fails unless the code runs on the device.
static int32_t CheckDevice(const struct MyccCudaScope* scope) {
  const struct MyccCudaModule* module = &mycc_cuda_module;
  int major = 0, minor = 0, shared_bytes = 0;
  char name[128] = "";
  MYCC_TRY(scope, DeviceGetAttribute, &major, kCudaDeviceMajor, scope->device);
  MYCC_TRY(scope, DeviceGetAttribute, &minor, kCudaDeviceMinor, scope->device);
  MYCC_TRY(scope, DeviceGetAttribute, &shared_bytes, kCudaDeviceMaxSharedBytes, scope->device);
  MYCC_TRY(scope, DeviceGetName, name, (int)sizeof name, scope->device);
  const int arch = 10 * major + minor;
  // Architecture-specific code runs only on its architecture, other code also on later minor versions.
  const int runs =
      module->arch_specific ? arch == module->arch : arch / 10 == module->arch / 10 && arch >= module->arch;
  if (!runs) {
    return MyccFail("%s: compiled for `%s`, but device %d (%s) is sm_%d", module->name, module->target,
                    scope->device_id, name, arch);
  }
  if (module->most_shared_bytes > shared_bytes) {
    return MyccFail(
        "%s: compiled for `%s`, needs %d bytes of shared memory for a block, but device %d (%s) has %d",
        module->name, module->target, (int)module->most_shared_bytes, scope->device_id, name, shared_bytes);
  }
  return 0;
}

// Libraries and kernels belong to the process, not to a context.
static int32_t LoadLibraries(const struct MyccCudaScope* scope) {
  const struct MyccCudaModule* module = &mycc_cuda_module;
  for (int64_t i = 0; i < module->num_images; ++i) {
    if (module->handles.libraries[i] != NULL) continue;
    MYCC_TRY(scope, LibraryLoadData, &module->handles.libraries[i], module->images[i].code, NULL, NULL, 0,
             NULL, NULL, 0);
  }
  for (int64_t i = 0; i < module->num_kernels; ++i) {
    MYCC_TRY(scope, LibraryGetKernel, &module->handles.kernels[i],
             module->handles.libraries[module->kernels[i].image], module->kernels[i].name);
  }
  is_loaded = 1;
  return 0;
}

static int32_t LoadKernels(const struct MyccCudaScope* scope) {
  if (!is_loaded && LoadLibraries(scope) != 0) return 1;
  for (int64_t i = 0; i < mycc_cuda_module.num_kernels; ++i) {
    const struct MyccCudaKernel* kernel = &mycc_cuda_module.kernels[i];
    const CuKernel handle = mycc_cuda_module.handles.kernels[i];
    if (kernel->shared_bytes > 0)
      MYCC_TRY(scope, KernelSetAttribute, kCudaFunctionMaxDynamicSharedBytes, (int)kernel->shared_bytes,
               handle, scope->device);
    if (kernel->any_cluster)
      MYCC_TRY(scope, KernelSetAttribute, kCudaFunctionAnyClusterSize, 1, handle, scope->device);
    // A kernel is loaded into a context at its first use, which must not be during a capture.
    CuFunction function;
    MYCC_TRY(scope, KernelGetFunction, &function, handle);
  }
  return 0;
}

int MyccCudaIsLoaded(struct MyccCudaScope* scope) {
  for (const struct Ready* entry = __atomic_load_n(&ready, __ATOMIC_ACQUIRE); entry != NULL;
       entry = entry->next) {
    if (entry->context_id != scope->context_id) continue;
    scope->weights = entry->weights;
    return 1;
  }
  return 0;
}

// Copies the weights to the device, on a stream that nothing else uses.
static int32_t UploadWeights(const struct MyccCudaScope* scope, CuAddress* weights) {
  const struct MyccCudaModule* module = &mycc_cuda_module;
  *weights = 0;
  if (module->weight_bytes == 0) return 0;
  MYCC_TRY(scope, MemAlloc, weights, (size_t)module->weight_bytes);
  CuResult result = scope->driver->MemcpyHtoDAsync(*weights, module->weights, (size_t)module->weight_bytes,
                                                   kCudaStreamPerThread);
  if (result == kCudaSuccess) result = scope->driver->StreamSynchronize(kCudaStreamPerThread);
  if (result == kCudaSuccess) return 0;
  scope->driver->MemFree(*weights);
  return MyccCudaFail(scope->driver, "cuMemcpyHtoDAsync of the weights", result);
}

// Under the lock.
static int32_t LoadHere(struct MyccCudaScope* scope) {
  if (MyccCudaIsLoaded(scope)) return 0;  // by another thread meanwhile
  struct Ready* entry = malloc(sizeof *entry);
  if (entry == NULL) return MyccFail("%s: no memory", mycc_cuda_module.name);
  entry->context_id = scope->context_id;
  const int mode = MyccCudaRelax(scope->driver);
  const int32_t failed = LoadKernels(scope) != 0 || UploadWeights(scope, &entry->weights) != 0;
  MyccCudaRestore(scope->driver, mode);
  if (failed) {
    free(entry);
    return 1;
  }
  scope->weights = entry->weights;
  entry->next = ready;
  __atomic_store_n(&ready, entry, __ATOMIC_RELEASE);
  return 0;
}

int32_t MyccCudaLoad(struct MyccCudaScope* scope) {
  if (MyccCudaIsLoaded(scope)) return 0;
  if (CheckDevice(scope) != 0) return 1;
  MyccLock();
  const int32_t failed = LoadHere(scope);
  MyccUnlock();
  return failed;
}

// Runs when the artifact is unloaded, after the destructor of workspaces, which needs the contexts. If the
// driver has shut down before, its functions return an error.
__attribute__((destructor(101))) static void Unload(void) {
  const struct MyccCudaDriver* driver = MyccCudaOpened();
  while (ready != NULL) {
    struct Ready* entry = ready;
    ready = entry->next;
    free(entry);
  }
  if (driver == NULL) return;
  for (int64_t i = 0; i < mycc_cuda_module.num_images; ++i) {
    if (mycc_cuda_module.handles.libraries[i] != NULL)
      driver->LibraryUnload(mycc_cuda_module.handles.libraries[i]);
  }
  for (int i = 0; i < kMaxDevices; ++i) {
    if (primary[i] != NULL) driver->DevicePrimaryCtxRelease(i);
  }
}
