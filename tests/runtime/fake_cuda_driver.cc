// The driver's functions, as libcuda.so.1 exports them.
#include <cstdio>
#include <cstring>
#include <sstream>
#include <utility>

#include "tests/runtime/fake_cuda_state.h"

namespace mycc::fake_cuda {

extern "C" {

CuResult cuInit(unsigned) {
  FAKE(true);
  return kCudaSuccess;
}
CuResult cuGetErrorName(CuResult result, const char** name) {
  *name = nullptr;
  if (result > kUnknown) return kInvalidValue;
  *name = result == kOutOfMemory          ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == kCaptureUnsupported ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
                                          : "CUDA_ERROR_UNKNOWN";
  return kCudaSuccess;
}
CuResult cuGetErrorString(CuResult result, const char** text) {
  *text = nullptr;
  if (result > kUnknown) return kInvalidValue;
  *text = result == kOutOfMemory          ? "out of memory"
          : result == kCaptureUnsupported ? "operation not permitted when stream is capturing"
                                          : "unknown error";
  return kCudaSuccess;
}
CuResult cuDriverGetVersion(int* version) {
  FAKE(true);
  *version = 13000;
  return kCudaSuccess;
}
CuResult cuDeviceGetCount(int* count) {
  FAKE(true);
  *count = 2;
  return kCudaSuccess;
}
CuResult cuDeviceGet(int* device, int ordinal) {
  FAKE(true);
  *device = ordinal;
  return ordinal >= 0 && ordinal < 2 ? kCudaSuccess : kInvalidValue;
}
CuResult cuDeviceGetName(char* name, int size, int device) {
  FAKE(true);
  std::snprintf(name, size, "%s", state.devices[device].name.c_str());
  return kCudaSuccess;
}
CuResult cuDeviceGetUuid_v2(unsigned char (*uuid)[16], int) {
  FAKE(true);
  for (int i = 0; i < 16; ++i) (*uuid)[i] = static_cast<unsigned char>(i);
  return kCudaSuccess;
}
CuResult cuDeviceGetPCIBusId(char* text, int size, int device) {
  FAKE(true);
  std::snprintf(text, size, "0000:%02x:00.0", device + 1);
  return kCudaSuccess;
}
CuResult cuDeviceTotalMem_v2(size_t* bytes, int) {
  FAKE(true);
  *bytes = size_t{1} << 30;
  return kCudaSuccess;
}
CuResult cuDeviceGetAttribute(int* value, int attribute, int device) {
  FAKE(true);
  const Device& d = state.devices[device];
  switch (attribute) {
    case kCudaDeviceMajor: *value = d.major; break;
    case kCudaDeviceMinor: *value = d.minor; break;
    case kCudaDeviceMultiprocessors: *value = d.sms; break;
    case kCudaDeviceMaxSharedBytes: *value = d.shared_bytes; break;
    case kCudaDeviceL2Bytes: *value = d.l2_bytes; break;
    default: return kInvalidValue;
  }
  return kCudaSuccess;
}
CuResult cuDevicePrimaryCtxRetain(Context** context, int device) {
  FAKE(true);
  *context = PrimaryOf(device);
  return kCudaSuccess;
}
CuResult cuDevicePrimaryCtxRelease_v2(int) {
  FAKE(true);
  return kCudaSuccess;
}
CuResult cuCtxGetCurrent(Context** context) {
  FAKE(true);
  *context = current_contexts.empty() ? nullptr : current_contexts.back();
  return kCudaSuccess;
}
CuResult cuCtxGetDevice(int* device) {
  FAKE(true);
  if (current_contexts.empty()) return kInvalidValue;
  *device = current_contexts.back()->device;
  return kCudaSuccess;
}
CuResult cuCtxGetId(Context* context, unsigned long long* id) {
  FAKE(true);
  *id = context->id;
  return kCudaSuccess;
}
CuResult cuCtxPushCurrent_v2(Context* context) {
  FAKE(true);
  current_contexts.push_back(context);
  return kCudaSuccess;
}
CuResult cuCtxPopCurrent_v2(Context** context) {
  FAKE(true);
  if (current_contexts.empty()) return kInvalidValue;
  *context = current_contexts.back();
  current_contexts.pop_back();
  return kCudaSuccess;
}
CuResult cuCtxSynchronize() {
  FAKE(false);
  return kCudaSuccess;
}
CuResult cuLibraryLoadData(void** library, const void* code, void*, void*, unsigned, void*, void**,
                           unsigned) {
  FAKE(false);
  *library = const_cast<void*>(code);
  return kCudaSuccess;
}
CuResult cuLibraryUnload(void*) {
  FAKE(true);
  return kCudaSuccess;
}
CuResult cuLibraryGetKernel(Kernel** kernel, void*, const char* name) {
  FAKE(false);
  if (std::strstr(name, "missing") != nullptr) return kNotFound;
  state.kernels.push_back(std::make_unique<Kernel>(Kernel{name}));
  *kernel = state.kernels.back().get();
  return kCudaSuccess;
}
CuResult cuKernelGetFunction(void** function, Kernel* kernel) {
  FAKE(false);
  *function = kernel;
  return kCudaSuccess;
}
CuResult cuKernelSetAttribute(int attribute, int value, Kernel* kernel, int device) {
  FAKE(false);
  if (attribute == kCudaFunctionMaxDynamicSharedBytes && value > state.devices[device].shared_bytes)
    return kInvalidValue;
  state.work.push_back("attribute " + std::to_string(attribute) + " of " + kernel->name + " = " +
                       std::to_string(value));
  return kCudaSuccess;
}
CuResult cuTensorMapEncodeTiled(CuTensorMapBits* bits, int type, uint32_t rank, void* address,
                                const uint64_t* dims, const uint64_t* strides, const uint32_t* box,
                                const uint32_t*, int, int swizzle, int, int) {
  FAKE(true);
  if (reinterpret_cast<uintptr_t>(bits) % 64 != 0) return kInvalidValue;
  std::ostringstream line;
  line << "map of " << address << " type " << type << " swizzle " << swizzle << " dims";
  for (uint32_t d = 0; d < rank; ++d) line << " " << dims[d] << "/" << box[d];
  for (uint32_t d = 0; d + 1 < rank; ++d) line << " stride " << strides[d];
  state.work.push_back(line.str());
  bits->opaque[0] = reinterpret_cast<uintptr_t>(address);
  return kCudaSuccess;
}
// Kernels of these tests take pointers, as many as their name's last letter says, or (a copy) two maps.
CuResult cuLaunchKernelEx(const CuLaunchConfig* config, Kernel* kernel, void** params, void**) {
  FAKE(true);
  uint32_t cluster = 1;
  bool overlaps = false;
  for (uint32_t i = 0; i < config->num_attributes; ++i) {
    const CuLaunchAttribute& attribute = config->attributes[i];
    if (attribute.id == kCudaLaunchCluster) cluster = attribute.value.cluster[0];
    if (attribute.id == kCudaLaunchOverlap) overlaps = attribute.value.overlap != 0;
  }
  std::ostringstream line;
  line << "launch " << kernel->name << " grid " << config->grid[0] << "," << config->grid[1] << ","
       << config->grid[2] << " block " << config->block[0] << " shared " << config->shared_bytes
       << " cluster " << cluster << (overlaps ? " overlapping" : "") << " stream " << config->stream
       << " args";
  for (int i = 0; i < kernel->name.back() - '0'; ++i) line << " " << *static_cast<void**>(params[i]);
  for (int i = 0; kernel->name == "copy_0" && i < 2; ++i)
    line << " map of 0x" << std::hex << static_cast<CuTensorMapBits*>(params[i])->opaque[0];
  state.work.push_back(line.str());
  return kCudaSuccess;
}
CuResult cuMemGetInfo_v2(size_t* free, size_t* total) {
  FAKE(true);
  *free = 1000;
  *total = 2000;
  return kCudaSuccess;
}
CuResult cuMemAlloc_v2(uintptr_t* address, size_t bytes) {
  FAKE(false);
  if (bytes > (size_t{1} << 30)) return kOutOfMemory;
  *address = reinterpret_cast<uintptr_t>(Allocate(static_cast<int64_t>(bytes)));
  return kCudaSuccess;
}
CuResult cuMemFree_v2(uintptr_t address) {
  FAKE(false);
  Free(reinterpret_cast<void*>(address));
  return kCudaSuccess;
}
CuResult cuMemsetD8Async(uintptr_t address, unsigned char value, size_t bytes, void* stream) {
  FAKE(true);
  std::ostringstream line;
  line << "memset " << reinterpret_cast<void*>(address) << " " << bytes << " stream " << stream;
  state.work.push_back(line.str());
  std::memset(reinterpret_cast<void*>(address), value, bytes);
  return kCudaSuccess;
}
CuResult cuMemcpyHtoD_v2(uintptr_t to, const void* from, size_t bytes) {
  FAKE(false);
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return kCudaSuccess;
}
CuResult cuMemcpyDtoH_v2(void* to, uintptr_t from, size_t bytes) {
  FAKE(false);
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return kCudaSuccess;
}
CuResult cuMemcpyHtoDAsync_v2(uintptr_t to, const void* from, size_t bytes, void*) {
  FAKE(true);
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return kCudaSuccess;
}
CuResult cuMemcpyDtoHAsync_v2(void* to, uintptr_t from, size_t bytes, void*) {
  FAKE(true);
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return kCudaSuccess;
}
CuResult cuPointerGetAttribute(void* value, int attribute, uintptr_t address) {
  FAKE(true);
  const Block* block = BlockAt(address);
  if (attribute != kCudaPointerBufferId || block == nullptr) return kInvalidValue;
  *static_cast<unsigned long long*>(value) = block->id;
  return kCudaSuccess;
}
CuResult cuStreamCreate(void** stream, unsigned) {
  FAKE(true);
  *stream = NewStream();
  return kCudaSuccess;
}
CuResult cuStreamDestroy_v2(void*) {
  FAKE(true);
  return kCudaSuccess;
}
CuResult cuStreamSynchronize(void* stream) {
  FAKE(false);
  return state.captures.count(stream) > 0 ? kCaptureUnsupported : kCudaSuccess;
}
CuResult cuStreamBeginCapture_v2(void* stream, int) {
  FAKE(true);
  BeginCapture(stream);
  return kCudaSuccess;
}
CuResult cuStreamEndCapture(void* stream, void** graph) {
  FAKE(true);
  *graph = reinterpret_cast<void*>(static_cast<uintptr_t>(EndCapture(stream)));
  return kCudaSuccess;
}
CuResult cuStreamGetCaptureInfo_v2(void* stream, int* status, uint64_t* id, void** graph, const void**,
                                   size_t*) {
  FAKE(true);
  const auto it = state.captures.find(stream);
  *status = it == state.captures.end() ? 0 : 1;
  if (it == state.captures.end()) return kCudaSuccess;
  *id = it->second.id;
  *graph = reinterpret_cast<void*>(static_cast<uintptr_t>(it->second.graph));
  return kCudaSuccess;
}
CuResult cuThreadExchangeStreamCaptureMode(int* mode) {
  FAKE(true);
  std::swap(*mode, capture_mode);
  return kCudaSuccess;
}
CuResult cuUserObjectCreate(UserObject** made, void* object, void (*destroy)(void*), unsigned, unsigned) {
  FAKE(true);
  *made = new UserObject{object, destroy};
  return kCudaSuccess;
}
CuResult cuGraphRetainUserObject(void* graph, UserObject* object, unsigned, unsigned) {
  FAKE(true);
  state.objects[static_cast<int>(reinterpret_cast<uintptr_t>(graph))].push_back(*object);
  delete object;
  return kCudaSuccess;
}
CuResult cuGraphInstantiateWithFlags(void** executable, void* graph, uint64_t) {
  FAKE(true);
  *executable = graph;
  return kCudaSuccess;
}
CuResult cuGraphLaunch(void* executable, void* stream) {
  FAKE(true);
  std::ostringstream line;
  line << "graph " << reinterpret_cast<uintptr_t>(executable) << " stream " << stream;
  state.work.push_back(line.str());
  return kCudaSuccess;
}
CuResult cuGraphDestroy(void*) {
  FAKE(true);
  return kCudaSuccess;
}
CuResult cuGraphExecDestroy(void* graph) {
  FAKE(true);
  DestroyGraph(static_cast<int>(reinterpret_cast<uintptr_t>(graph)));
  return kCudaSuccess;
}
CuResult cuEventCreate(void** event, unsigned) {
  FAKE(true);
  *event = new int(0);
  return kCudaSuccess;
}
CuResult cuEventDestroy_v2(int* event) {
  FAKE(true);
  delete event;
  return kCudaSuccess;
}
CuResult cuEventRecordWithFlags(void*, void* stream, unsigned flags) {
  FAKE(true);
  const bool captured = state.captures.count(stream) > 0;
  return captured == (flags == kCudaEventRecordExternal) ? kCudaSuccess : kInvalidValue;
}
CuResult cuEventElapsedTime(float* milliseconds, void*, void*) {
  FAKE(true);
  *milliseconds = 0.25f;
  return kCudaSuccess;
}

// Functions that the driver's table has beside, and no test of this one calls.
CuResult cuMemcpyDtoDAsync_v2(uintptr_t, uintptr_t, size_t, void*) { return kInvalidValue; }
CuResult cuStreamQuery(void*) { return kInvalidValue; }
CuResult cuModuleLoadData(void**, const void*) { return kInvalidValue; }
CuResult cuModuleGetFunction(void**, void*, const char*) { return kInvalidValue; }
CuResult cuLaunchKernel() { return kInvalidValue; }

}  // extern "C"

}  // namespace mycc::fake_cuda
