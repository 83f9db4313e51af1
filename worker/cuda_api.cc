#include "worker/cuda_api.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// The first function that the library lacks; null when there is none.
const char* FindAll(void* library, CudaApi* api) {
#define MYCC_FIND(member, name) \
  if (!Find(library, name, &api->member)) return name
  MYCC_FIND(GetErrorName, "cuGetErrorName");
  MYCC_FIND(GetErrorString, "cuGetErrorString");
  MYCC_FIND(Init, "cuInit");
  MYCC_FIND(DriverGetVersion, "cuDriverGetVersion");
  MYCC_FIND(DeviceGetCount, "cuDeviceGetCount");
  MYCC_FIND(DeviceGet, "cuDeviceGet");
  MYCC_FIND(DeviceGetName, "cuDeviceGetName");
  MYCC_FIND(DeviceGetUuid, "cuDeviceGetUuid_v2");
  MYCC_FIND(DeviceGetAttribute, "cuDeviceGetAttribute");
  MYCC_FIND(PrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  MYCC_FIND(CtxSetCurrent, "cuCtxSetCurrent");
  MYCC_FIND(MemGetInfo, "cuMemGetInfo_v2");
  MYCC_FIND(MemAlloc, "cuMemAlloc_v2");
  MYCC_FIND(MemFree, "cuMemFree_v2");
  MYCC_FIND(MemsetD8Async, "cuMemsetD8Async");
  MYCC_FIND(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
  MYCC_FIND(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  MYCC_FIND(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2");
  MYCC_FIND(StreamCreate, "cuStreamCreate");
  MYCC_FIND(StreamSynchronize, "cuStreamSynchronize");
  MYCC_FIND(StreamQuery, "cuStreamQuery");
  MYCC_FIND(StreamBeginCapture, "cuStreamBeginCapture_v2");
  MYCC_FIND(StreamEndCapture, "cuStreamEndCapture");
  MYCC_FIND(GraphInstantiate, "cuGraphInstantiateWithFlags");
  MYCC_FIND(GraphLaunch, "cuGraphLaunch");
  MYCC_FIND(GraphExecDestroy, "cuGraphExecDestroy");
  MYCC_FIND(GraphDestroy, "cuGraphDestroy");
  MYCC_FIND(EventCreate, "cuEventCreate");
  MYCC_FIND(EventDestroy, "cuEventDestroy_v2");
  MYCC_FIND(EventRecordWithFlags, "cuEventRecordWithFlags");
  MYCC_FIND(EventElapsedTime, "cuEventElapsedTime");
  MYCC_FIND(ModuleLoadData, "cuModuleLoadData");
  MYCC_FIND(ModuleGetFunction, "cuModuleGetFunction");
  MYCC_FIND(LaunchKernel, "cuLaunchKernel");
#undef MYCC_FIND
  return nullptr;
}

absl::StatusOr<CudaApi> Load() {
  void* const library = dlopen(kLibrary, RTLD_NOW);
  if (library == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "no NVIDIA driver: ", kLibrary, " was not found where the dynamic loader looks (", dlerror(), ")"));
  }
  CudaApi api;
  if (const char* missing = FindAll(library, &api); missing != nullptr) {
    return absl::NotFoundError(
        absl::StrCat(kLibrary, " has no ", missing, "; expected the NVIDIA driver of CUDA 12 or later"));
  }
  if (const CudaResult result = api.Init(0); result != 0) {
    const std::string why = std::string(api.StatusOf("cuInit", result).message());
    return absl::NotFoundError(absl::StrCat("no NVIDIA GPU that can be used: ", why));
  }
  return api;
}

}  // namespace

absl::StatusOr<const CudaApi*> CudaApi::Open() {
  static const absl::StatusOr<CudaApi> api = Load();
  if (!api.ok()) return api.status();
  return &*api;
}

absl::Status CudaApi::StatusOf(const char* function, CudaResult result) const {
  if (result == 0) return absl::OkStatus();
  const char *name = "an unknown error", *text = "error";
  GetErrorName(result, &name);
  GetErrorString(result, &text);
  const std::string what = absl::StrCat(function, ": ", text, " (", name, ")");
  switch (result) {
    case 2: return absl::ResourceExhaustedError(what);  // out of memory
    case 46:                                            // devices unavailable
    case 100:                                           // no device
    case 101:                                           // no such device
    case 214:                                           // uncorrectable memory error
    case 226:                                           // contained memory error
    case 802:                                           // system not ready
      return absl::UnavailableError(what);
    case 700:  // illegal address
    case 702:  // launch timeout
    case 709:  // the context is destroyed
    case 710:  // device-side assertion
    case 714:  // hardware stack error
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case 719:  // launch failed
    case 999:  // unknown
      return absl::AbortedError(what);
    default: return absl::InternalError(what);
  }
}

}  // namespace mycc
