// A driver without a device that carries kernels out on the host: the measuring kernels as they are, and the
// candidates of tests/worker/misbehaving.h as their names say. Work is done when it is enqueued; a clock of
// its own moves with it. Behind a kernel that hangs nothing is done any more, and whatever may wait for the
// device waits for ever: synchronizing, copies between host and device, whatever allocates, loads, frees,
// destroys or unloads, and an orderly end of the process. Linked into a test, it is what the test's
// dlopen("libcuda.so.1") finds. Thread rule: one thread of each process.
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "codegen/runtime/artifact/cuda_driver_types.h"
#include "tests/worker/host_kernels.h"

namespace {

namespace kernels = mycc::host_kernels;
constexpr CuResult kInvalidValue = 1, kNotReady = 600, kIllegalAddress = 700, kUncorrectable = 214,
                   kOperatingSystem = 304;
constexpr int64_t kElements = 64000;  // of the candidates' tensors
constexpr double kKernelSeconds = 10e-6, kBaselineSeconds = 140e-6, kBytesASecond = 3e12;

using Work = std::function<void()>;
struct Graph {
  std::vector<Work> work;
};
struct Kernel {
  std::string name;
};

CuResult failed = kCudaSuccess;  // for good
bool hung = false;
double now_seconds = 0;
Graph* capturing = nullptr;
int calls = 0;
bool is_disturbed = false;  // a neighbour began beside what comes next

void WaitForDevice() {
  while (hung) pause();
}

[[gnu::destructor]] void Shutdown() { WaitForDevice(); }

// Carries the work out, or notes it for the graph.
CuResult Enqueue(double seconds, Work work) {
  if (failed != kCudaSuccess) return failed;
  const Work timed = [seconds, work = std::move(work)] {
    now_seconds += seconds;
    work();
  };
  if (capturing != nullptr) {
    capturing->work.push_back(timed);
  } else if (!hung) {
    timed();
  }
  return failed;
}

template <typename T>
T At(void** params, int i) {
  T value;
  std::memcpy(&value, params[i], sizeof(T));
  return value;
}

// The kernel with its parameters, which are read now.
Work MeasuringKernel(const std::string& name, void** p) {
  using kernels::i64;
  using kernels::u64;
  using kernels::u8;
  using Findings = kernels::Findings*;
  if (name == "mycc_draw")
    return [a = At<void*>(p, 0), b = At<i64>(p, 1), c = At<int>(p, 2), d = At<int>(p, 3), e = At<u64>(p, 4),
            f = At<u64>(p, 5), g = At<i64>(p, 6),
            h = At<u64>(p, 7)] { kernels::mycc_draw(a, b, c, d, e, f, g, h); };
  if (name == "mycc_sprinkle")
    return [a = At<void*>(p, 0), b = At<i64>(p, 1), c = At<int>(p, 2), d = At<int>(p, 3), e = At<u64>(p, 4),
            f = At<u64>(p, 5), g = At<i64>(p, 6), h = At<double>(p, 7), i = At<u64*>(p, 8),
            j = At<int>(p, 9)] { kernels::mycc_sprinkle(a, b, c, d, e, f, g, h, i, j); };
  if (name == "mycc_gather")
    return [a = At<void*>(p, 0), b = At<void*>(p, 1), c = At<i64*>(p, 2), d = At<i64>(p, 3),
            e = At<int>(p, 4)] { kernels::mycc_gather(a, b, c, d, e); };
  if (name == "mycc_check_drawn")
    return [a = At<void*>(p, 0), b = At<i64>(p, 1), c = At<int>(p, 2), d = At<int>(p, 3), e = At<u64>(p, 4),
            f = At<u64>(p, 5), g = At<i64>(p, 6), h = At<u64>(p, 7),
            i = At<Findings>(p, 8)] { kernels::mycc_check_drawn(a, b, c, d, e, f, g, h, i); };
  if (name == "mycc_check_bytes")
    return [a = At<u8*>(p, 0), b = At<i64>(p, 1), c = At<int>(p, 2), d = At<Findings>(p, 3)] {
      kernels::mycc_check_bytes(a, b, c, d);
    };
  if (name == "mycc_digest")
    return [a = At<u8*>(p, 0), b = At<i64>(p, 1), c = At<u64*>(p, 2)] { kernels::mycc_digest(a, b, c); };
  if (name == "mycc_scale")
    return [a = At<void*>(p, 0), b = At<i64>(p, 1), c = At<int>(p, 2), d = At<u64*>(p, 3)] {
      kernels::mycc_scale(a, b, c, d);
    };
  if (name == "mycc_compare")
    return [a = At<void*>(p, 0), b = At<void*>(p, 1), c = At<i64*>(p, 2), d = At<i64>(p, 3),
            e = At<int>(p, 4), f = At<double>(p, 5), g = At<double>(p, 6), h = At<u64*>(p, 7),
            i = At<Findings>(p, 8)] { kernels::mycc_compare(a, b, c, d, e, f, g, h, i); };
  if (name == "mycc_differ")
    return [a = At<void*>(p, 0), b = At<void*>(p, 1), c = At<i64>(p, 2), d = At<int>(p, 3),
            e = At<Findings>(p, 4)] { kernels::mycc_differ(a, b, c, d, e); };
  return [] {};  // the baseline and the neighbour, whose results nobody reads
}

void RunCandidate(const std::string& name, float* x, float* y) {
  for (int64_t i = 0; i < kElements; ++i) {
    if (name == "forgetful" && i == 31999) continue;
    y[i] = x[i] * (name == "wrong" && i == 777 ? 3.0f : 2.0f);
    if (name == "finite" && !std::isfinite(y[i])) y[i] = 0.0f;
  }
  if (name == "beside") y[-1] = 0.0f;
  if (name == "input") x[5] = 7.0f;
  if (name == "flaky" && ++calls > 2) y[0] = 5.0f;
  if (name == "restless" && ++calls % 13 == 0) y[32000] = std::nextafter(y[32000], 9.0f);
  if (name == "shy" && is_disturbed) y[31] = std::nextafter(y[31], 9.0f);
  is_disturbed = false;
  if (name == "fault") failed = kIllegalAddress;
  if (name == "gone") failed = kUncorrectable;
  if (name == "hang") hung = true;
  if (name == "crash") {
    std::signal(SIGSEGV, SIG_DFL);
    std::raise(SIGSEGV);
  }
  if (name == "killed") kill(getpid(), SIGKILL);
}

}  // namespace

extern "C" {

CuResult cuGetErrorName(CuResult result, const char** name) {
  *name = result == kIllegalAddress  ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == kUncorrectable ? "CUDA_ERROR_ECC_UNCORRECTABLE"
                                     : "CUDA_ERROR_UNKNOWN";
  return kCudaSuccess;
}
CuResult cuGetErrorString(CuResult result, const char** text) {
  *text = result == kIllegalAddress  ? "an illegal memory access was encountered"
          : result == kUncorrectable ? "uncorrectable ECC error encountered"
                                     : "unknown error";
  return kCudaSuccess;
}
// A real one gives names to its threads, and does not start where it cannot.
CuResult cuInit(unsigned) {
  const std::string file = "/proc/self/task/" + std::to_string(gettid()) + "/comm";
  FILE* const name = std::fopen(file.c_str(), "w");
  const bool is_named = name != nullptr && std::fputs("fake_gpu", name) >= 0;
  const bool is_kept = name != nullptr && std::fclose(name) == 0;
  return is_named && is_kept ? kCudaSuccess : kOperatingSystem;
}
CuResult cuDriverGetVersion(int* version) { return *version = 13000, kCudaSuccess; }
CuResult cuDeviceGetCount(int* count) { return *count = 1, kCudaSuccess; }
CuResult cuDeviceGet(int* device, int ordinal) {
  return *device = ordinal, ordinal == 0 ? kCudaSuccess : 101;
}
CuResult cuDeviceGetName(char* name, int size, int) {
  std::snprintf(name, size, "Fake GPU");
  return kCudaSuccess;
}
CuResult cuDeviceGetUuid_v2(unsigned char (*uuid)[16], int) {
  for (int i = 0; i < 16; ++i) (*uuid)[i] = static_cast<unsigned char>(i);
  return kCudaSuccess;
}
CuResult cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == kCudaDeviceMajor             ? 9
           : attribute == kCudaDeviceMultiprocessors ? 132
           : attribute == kCudaDeviceL2Bytes         ? 1 << 20
           : attribute == kCudaDeviceMaxSharedBytes  ? 232448
                                                     : 0;
  return kCudaSuccess;
}
CuResult cuDeviceGetPCIBusId(char* text, int size, int) {
  std::snprintf(text, size, "0000:01:00.0");
  return kCudaSuccess;
}
CuResult cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = size_t{1} << 34, kCudaSuccess; }
CuResult cuDevicePrimaryCtxRetain(void** context, int) { return *context = &failed, failed; }
CuResult cuDevicePrimaryCtxRelease_v2(int) { return WaitForDevice(), kCudaSuccess; }
CuResult cuCtxGetCurrent(void** context) { return *context = &failed, kCudaSuccess; }
CuResult cuCtxGetDevice(int* device) { return *device = 0, kCudaSuccess; }
CuResult cuCtxGetId(void*, unsigned long long* id) { return *id = 1, kCudaSuccess; }
CuResult cuCtxPushCurrent_v2(void*) { return kCudaSuccess; }
CuResult cuCtxPopCurrent_v2(void** context) { return *context = &failed, kCudaSuccess; }

CuResult cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = *total = size_t{1} << 34;
  return failed;
}
CuResult cuMemAlloc_v2(uintptr_t* address, size_t bytes) {
  WaitForDevice();
  *address = reinterpret_cast<uintptr_t>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return failed;
}
CuResult cuMemFree_v2(uintptr_t address) {
  WaitForDevice();
  std::free(reinterpret_cast<void*>(address));
  return failed;
}
CuResult cuMemsetD8Async(uintptr_t to, unsigned char value, size_t bytes, void*) {
  return Enqueue(static_cast<double>(bytes) / kBytesASecond,
                 [=] { std::memset(reinterpret_cast<void*>(to), value, bytes); });
}
CuResult cuMemcpyHtoDAsync_v2(uintptr_t to, const void* from, size_t bytes, void*) {
  WaitForDevice();  // until the host's pages are read
  return Enqueue(0, [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
}
CuResult cuMemcpyDtoHAsync_v2(void* to, uintptr_t from, size_t bytes, void*) {
  WaitForDevice();
  return Enqueue(0, [=] { std::memcpy(to, reinterpret_cast<void*>(from), bytes); });
}
CuResult cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t bytes, void*) {
  return Enqueue(0, [=] { std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes); });
}
CuResult cuPointerGetAttribute(unsigned long long* value, int, uintptr_t) { return *value = 1, kCudaSuccess; }

CuResult cuStreamCreate(void** stream, unsigned) { return *stream = &now_seconds, failed; }
CuResult cuStreamDestroy_v2(void*) { return WaitForDevice(), kCudaSuccess; }
CuResult cuStreamSynchronize(void*) { return WaitForDevice(), failed; }
CuResult cuStreamQuery(void*) { return hung ? kNotReady : failed; }
CuResult cuStreamGetCaptureInfo_v2(void*, int* status, uint64_t* id, void** graph, void*, void*) {
  *status = capturing != nullptr;
  *id = capturing != nullptr;
  *graph = capturing;
  return kCudaSuccess;
}
CuResult cuThreadExchangeStreamCaptureMode(int*) { return kCudaSuccess; }
CuResult cuStreamBeginCapture_v2(void*, int) { return capturing = new Graph, kCudaSuccess; }
CuResult cuStreamEndCapture(void*, void** graph) {
  *graph = capturing;
  capturing = nullptr;
  return failed;
}
CuResult cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  return *exec = new Graph(*static_cast<Graph*>(graph)), failed;
}
CuResult cuGraphLaunch(void* exec, void*) {
  if (capturing != nullptr) return kInvalidValue;
  for (const Work& work : static_cast<Graph*>(exec)->work) {
    if (!hung) work();
  }
  return failed;
}
CuResult cuGraphExecDestroy(void* exec) {
  WaitForDevice();
  delete static_cast<Graph*>(exec);
  return kCudaSuccess;
}
CuResult cuGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return kCudaSuccess;
}
CuResult cuUserObjectCreate(void**, void*, void (*)(void*), unsigned, unsigned) { return kCudaSuccess; }
CuResult cuGraphRetainUserObject(void*, void*, unsigned, unsigned) { return kCudaSuccess; }

CuResult cuEventCreate(void** event, unsigned) { return *event = new double(0), failed; }
CuResult cuEventDestroy_v2(void* event) {
  WaitForDevice();
  delete static_cast<double*>(event);
  return kCudaSuccess;
}
CuResult cuEventRecordWithFlags(void* event, void*, unsigned) {
  return Enqueue(0, [event] { *static_cast<double*>(event) = now_seconds; });
}
CuResult cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  if (hung) return kNotReady;
  *milliseconds = static_cast<float>(1e3 * (*static_cast<double*>(end) - *static_cast<double*>(start)));
  return failed;
}

CuResult cuModuleLoadData(void** module, const void*) {
  WaitForDevice();
  return *module = &hung, failed;
}
CuResult cuModuleGetFunction(void** function, void*, const char* name) {
  static auto* const known = new std::map<std::string, Kernel>;
  *function = &known->emplace(name, Kernel{name}).first->second;
  return failed;
}
CuResult cuLaunchKernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        void*, void** params, void**) {
  const std::string& name = static_cast<Kernel*>(function)->name;
  is_disturbed = is_disturbed || name == "mycc_neighbour";
  return Enqueue(name == "mycc_baseline" ? kBaselineSeconds : kKernelSeconds, MeasuringKernel(name, params));
}
CuResult cuLibraryLoadData(void** library, const void*, void*, void*, unsigned, void*, void**, unsigned) {
  WaitForDevice();
  return *library = &hung, failed;
}
CuResult cuLibraryUnload(void*) { return WaitForDevice(), kCudaSuccess; }
CuResult cuLibraryGetKernel(void** kernel, void*, const char* name) {
  return cuModuleGetFunction(kernel, nullptr, name);
}
CuResult cuKernelGetFunction(void** function, void* kernel) { return *function = kernel, kCudaSuccess; }
CuResult cuKernelSetAttribute(int, int, void*, int) { return kCudaSuccess; }
CuResult cuLaunchKernelEx(const CuLaunchConfig*, void* function, void** params, void**) {
  const std::string name = static_cast<Kernel*>(function)->name;
  float *const x = At<float*>(params, 0), *const y = At<float*>(params, 1);
  return Enqueue((name == "slow" ? 1.02 : 1) * kKernelSeconds, [=] { RunCandidate(name, x, y); });
}
// Functions that tables of the driver have beside, and nothing here calls.
CuResult cuTensorMapEncodeTiled() { return kInvalidValue; }
CuResult cuCtxSynchronize() { return kInvalidValue; }
CuResult cuMemcpyHtoD_v2(uintptr_t, const void*, size_t) { return kInvalidValue; }
CuResult cuMemcpyDtoH_v2(void*, uintptr_t, size_t) { return kInvalidValue; }

}  // extern "C"
