// Opens libcuda.so.1, NVIDIA's driver, at its first use.
#include <dlfcn.h>
#include <pthread.h>

#include "codegen/runtime/artifact/cuda_artifact.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void MyccLock(void) { pthread_mutex_lock(&lock); }
void MyccUnlock(void) { pthread_mutex_unlock(&lock); }

// The names under which the library exports the functions, in the order of struct MyccCudaDriver.
static const char* const kNames[] = {MYCC_CUDA_OF_BOTH(MYCC_CUDA_NAME)
                                         MYCC_CUDA_OF_ARTIFACTS(MYCC_CUDA_NAME)};
enum { kNumNames = sizeof kNames / sizeof kNames[0] };

static union {
  struct MyccCudaDriver functions;
  void* pointers[kNumNames];
} driver;
_Static_assert(sizeof driver.functions == sizeof driver.pointers, "a name for each function");
static int is_open;  // accessed atomically

int32_t MyccCudaFail(const struct MyccCudaDriver* functions, const char* function, CuResult result) {
  const char *name = "an unknown error", *text = "error";
  functions->GetErrorName(result, &name);
  functions->GetErrorString(result, &text);
  return MyccFail("%s: %s: %s (%s)", mycc_cuda_module.name, function, text, name);
}

static int32_t Open(void) {
  void* handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (handle == NULL) {
    return MyccFail(
        "%s: compiled for `%s`, and this machine has no NVIDIA driver: libcuda.so.1 was not found where the "
        "dynamic loader looks (%s)",
        mycc_cuda_module.name, mycc_cuda_module.target, dlerror());
  }
  for (int i = 0; i < kNumNames; ++i) {
    driver.pointers[i] = dlsym(handle, kNames[i]);
    if (driver.pointers[i] == NULL) {
      return MyccFail("%s: libcuda.so.1 has no %s; expected the NVIDIA driver of CUDA 12.0 or a later one",
                      mycc_cuda_module.name, kNames[i]);
    }
  }
  const CuResult result = driver.functions.Init(0);
  return result == kCudaSuccess ? 0 : MyccCudaFail(&driver.functions, "cuInit", result);
}

const struct MyccCudaDriver* MyccCudaOpened(void) {
  return __atomic_load_n(&is_open, __ATOMIC_ACQUIRE) ? &driver.functions : NULL;
}

const struct MyccCudaDriver* MyccCudaOpen(void) {
  if (__atomic_load_n(&is_open, __ATOMIC_ACQUIRE)) return &driver.functions;
  MyccLock();
  if (!is_open && Open() == 0) __atomic_store_n(&is_open, 1, __ATOMIC_RELEASE);
  MyccUnlock();
  return MyccCudaOpened();
}
