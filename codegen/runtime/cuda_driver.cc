#include "codegen/runtime/cuda_driver.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"
#include "codegen/runtime/artifact/cuda_driver_types.h"

namespace mycc {
namespace {

using Handle = void*;
using Address = CuAddress;
using Result = CuResult;

// The functions of libcuda.so.1, without their prefix "cu".
struct Driver {
  Result (*Init)(unsigned flags);
  Result (*GetErrorName)(Result, const char**);
  Result (*GetErrorString)(Result, const char**);
  Result (*DriverGetVersion)(int*);
  Result (*DeviceGetCount)(int*);
  Result (*DeviceGet)(int* device, int ordinal);
  Result (*DeviceGetName)(char*, int size, int device);
  Result (*DeviceGetAttribute)(int*, int attribute, int device);
  Result (*DeviceTotalMem)(size_t*, int device);
  Result (*DeviceGetPCIBusId)(char*, int size, int device);
  Result (*DevicePrimaryCtxRetain)(Handle*, int device);
  Result (*DevicePrimaryCtxRelease)(int device);
  Result (*CtxPushCurrent)(Handle);
  Result (*CtxPopCurrent)(Handle*);
  Result (*CtxSynchronize)();
  Result (*MemGetInfo)(size_t* free, size_t* total);
  Result (*MemAlloc)(Address*, size_t);
  Result (*MemFree)(Address);
  Result (*MemcpyHtoD)(Address, const void*, size_t);
  Result (*MemcpyDtoH)(void*, Address, size_t);
  Result (*MemsetD8Async)(Address, unsigned char, size_t, Handle stream);
  Result (*StreamCreate)(Handle*, unsigned flags);
  Result (*StreamDestroy)(Handle);
  Result (*StreamSynchronize)(Handle);
  Result (*StreamBeginCapture)(Handle, int mode);
  Result (*StreamEndCapture)(Handle, Handle* graph);
  Result (*GraphInstantiateWithFlags)(Handle* executable, Handle graph, uint64_t flags);
  Result (*GraphLaunch)(Handle executable, Handle stream);
  Result (*GraphDestroy)(Handle);
  Result (*GraphExecDestroy)(Handle);
  Result (*EventCreate)(Handle*, unsigned flags);
  Result (*EventDestroy)(Handle);
  Result (*EventRecordWithFlags)(Handle, Handle stream, unsigned flags);
  Result (*EventElapsedTime)(float* milliseconds, Handle begin, Handle end);
};

template <typename Function>
absl::Status Find(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  if (*function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("libcuda.so.1 has no ", name, "; expected the NVIDIA driver of CUDA 12.0 or a later one"));
}

absl::Status FindAll(void* library, Driver* driver) {
#define MYCC_FIND(name, exported) MYCC_RETURN_IF_ERROR(Find(library, exported, &driver->name))
  MYCC_FIND(Init, "cuInit");
  MYCC_FIND(GetErrorName, "cuGetErrorName");
  MYCC_FIND(GetErrorString, "cuGetErrorString");
  MYCC_FIND(DriverGetVersion, "cuDriverGetVersion");
  MYCC_FIND(DeviceGetCount, "cuDeviceGetCount");
  MYCC_FIND(DeviceGet, "cuDeviceGet");
  MYCC_FIND(DeviceGetName, "cuDeviceGetName");
  MYCC_FIND(DeviceGetAttribute, "cuDeviceGetAttribute");
  MYCC_FIND(DeviceTotalMem, "cuDeviceTotalMem_v2");
  MYCC_FIND(DeviceGetPCIBusId, "cuDeviceGetPCIBusId");
  MYCC_FIND(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  MYCC_FIND(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  MYCC_FIND(CtxPushCurrent, "cuCtxPushCurrent_v2");
  MYCC_FIND(CtxPopCurrent, "cuCtxPopCurrent_v2");
  MYCC_FIND(CtxSynchronize, "cuCtxSynchronize");
  MYCC_FIND(MemGetInfo, "cuMemGetInfo_v2");
  MYCC_FIND(MemAlloc, "cuMemAlloc_v2");
  MYCC_FIND(MemFree, "cuMemFree_v2");
  MYCC_FIND(MemcpyHtoD, "cuMemcpyHtoD_v2");
  MYCC_FIND(MemcpyDtoH, "cuMemcpyDtoH_v2");
  MYCC_FIND(MemsetD8Async, "cuMemsetD8Async");
  MYCC_FIND(StreamCreate, "cuStreamCreate");
  MYCC_FIND(StreamDestroy, "cuStreamDestroy_v2");
  MYCC_FIND(StreamSynchronize, "cuStreamSynchronize");
  MYCC_FIND(StreamBeginCapture, "cuStreamBeginCapture_v2");
  MYCC_FIND(StreamEndCapture, "cuStreamEndCapture");
  MYCC_FIND(GraphInstantiateWithFlags, "cuGraphInstantiateWithFlags");
  MYCC_FIND(GraphLaunch, "cuGraphLaunch");
  MYCC_FIND(GraphDestroy, "cuGraphDestroy");
  MYCC_FIND(GraphExecDestroy, "cuGraphExecDestroy");
  MYCC_FIND(EventCreate, "cuEventCreate");
  MYCC_FIND(EventDestroy, "cuEventDestroy_v2");
  MYCC_FIND(EventRecordWithFlags, "cuEventRecordWithFlags");
  MYCC_FIND(EventElapsedTime, "cuEventElapsedTime");
#undef MYCC_FIND
  return absl::OkStatus();
}

absl::Status Check(const Driver& driver, const std::string& what, Result result) {
  if (result == kCudaSuccess) return absl::OkStatus();
  const char *name = "an unknown error", *text = "error";
  driver.GetErrorName(result, &name);
  driver.GetErrorString(result, &text);
  const std::string message = absl::StrCat(what, ": ", text, " (", name, ")");
  if (result == kCudaErrorOutOfMemory) return absl::ResourceExhaustedError(message);
  if (result == kCudaErrorNoDevice) return absl::NotFoundError(message);
  return absl::InternalError(message);
}

absl::StatusOr<Driver> OpenDriver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "no NVIDIA driver: libcuda.so.1 was not found where the dynamic loader looks (", dlerror(), ")"));
  }
  Driver driver;
  MYCC_RETURN_IF_ERROR(FindAll(library, &driver));
  MYCC_RETURN_IF_ERROR(Check(driver, "cuInit", driver.Init(0)));
  return driver;
}

// Opened at the first call that succeeds, and kept.
const Driver* opened = nullptr;

absl::StatusOr<const Driver*> TheDriver() {
  static Mutex mutex;
  MutexLock lock(&mutex);
  if (opened == nullptr) {
    MYCC_ASSIGN_OR_RETURN(const Driver driver, OpenDriver());
    opened = new Driver(driver);
  }
  return opened;
}

// MYCC_CUDA(MemFree, address): calls the driver, which has been opened, and returns its error.
#define MYCC_CUDA(function, ...) \
  MYCC_RETURN_IF_ERROR(Check(*opened, "cu" #function, opened->function(__VA_ARGS__)))

absl::StatusOr<int> DeviceOf(const Driver& driver, int ordinal) {
  int count = 0, device = 0;
  MYCC_RETURN_IF_ERROR(Check(driver, "cuDeviceGetCount", driver.DeviceGetCount(&count)));
  if (ordinal < 0 || ordinal >= count)
    return absl::NotFoundError(
        absl::StrCat("no CUDA device ", ordinal, "; this process has ", count, ", numbered from 0"));
  MYCC_RETURN_IF_ERROR(Check(driver, "cuDeviceGet", driver.DeviceGet(&device, ordinal)));
  return device;
}

Address AddressOf(void* data) { return reinterpret_cast<Address>(data); }

}  // namespace

absl::StatusOr<int> CountCudaDevices() {
  MYCC_ASSIGN_OR_RETURN(const Driver* driver, TheDriver());
  int count = 0;
  MYCC_RETURN_IF_ERROR(Check(*driver, "cuDeviceGetCount", driver->DeviceGetCount(&count)));
  return count;
}

absl::StatusOr<CudaDeviceInfo> DescribeCudaDevice(int ordinal) {
  MYCC_ASSIGN_OR_RETURN(const Driver* driver, TheDriver());
  MYCC_ASSIGN_OR_RETURN(const int device, DeviceOf(*driver, ordinal));
  CudaDeviceInfo info;
  info.ordinal = ordinal;
  char text[256] = "";
  int shared_bytes = 0, l2_bytes = 0;
  size_t memory_bytes = 0;
  MYCC_CUDA(DeviceGetName, text, sizeof text, device);
  info.name = text;
  MYCC_CUDA(DeviceGetAttribute, &info.major, kCudaDeviceMajor, device);
  MYCC_CUDA(DeviceGetAttribute, &info.minor, kCudaDeviceMinor, device);
  MYCC_CUDA(DeviceGetAttribute, &info.sms, kCudaDeviceMultiprocessors, device);
  MYCC_CUDA(DeviceGetAttribute, &shared_bytes, kCudaDeviceMaxSharedBytes, device);
  MYCC_CUDA(DeviceGetAttribute, &l2_bytes, kCudaDeviceL2Bytes, device);
  MYCC_CUDA(DeviceTotalMem, &memory_bytes, device);
  MYCC_CUDA(DeviceGetPCIBusId, text, sizeof text, device);
  MYCC_CUDA(DriverGetVersion, &info.driver_version);
  info.shared_bytes = shared_bytes;
  info.l2_bytes = l2_bytes;
  info.memory_bytes = static_cast<int64_t>(memory_bytes);
  info.pci_bus_id = text;
  return info;
}

CudaBuffer::CudaBuffer(CudaBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
CudaBuffer::~CudaBuffer() {
  if (data_ != nullptr) opened->MemFree(AddressOf(data_));
}

absl::Status CudaBuffer::Write(const void* host) {
  if (bytes_ == 0) return absl::OkStatus();
  MYCC_CUDA(MemcpyHtoD, AddressOf(data_), host, static_cast<size_t>(bytes_));
  return absl::OkStatus();
}

absl::Status CudaBuffer::Read(void* host) const {
  if (bytes_ == 0) return absl::OkStatus();
  MYCC_CUDA(MemcpyDtoH, host, AddressOf(data_), static_cast<size_t>(bytes_));
  return absl::OkStatus();
}

CudaGraph::CudaGraph(CudaGraph&& other) noexcept : executable_(std::exchange(other.executable_, nullptr)) {}
CudaGraph::~CudaGraph() {
  if (executable_ != nullptr) opened->GraphExecDestroy(executable_);
}

CudaEvent::CudaEvent(CudaEvent&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
CudaEvent::~CudaEvent() {
  if (handle_ != nullptr) opened->EventDestroy(handle_);
}

absl::StatusOr<double> CudaEvent::SecondsSince(const CudaEvent& earlier) const {
  float milliseconds = 0;
  MYCC_CUDA(EventElapsedTime, &milliseconds, earlier.handle_, handle_);
  return milliseconds * 1e-3;
}

CudaStream::CudaStream(CudaStream&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), is_capturing_(other.is_capturing_) {}
CudaStream::~CudaStream() {
  if (handle_ != nullptr) opened->StreamDestroy(handle_);
}

absl::Status CudaStream::Synchronize() {
  MYCC_CUDA(StreamSynchronize, handle_);
  return absl::OkStatus();
}

absl::Status CudaStream::Record(const CudaEvent& event) {
  // An event that is recorded by a graph can be read only when the graph is told so.
  MYCC_CUDA(EventRecordWithFlags, event.handle_, handle_, is_capturing_ ? kCudaEventRecordExternal : 0);
  return absl::OkStatus();
}

absl::Status CudaStream::Fill(const CudaBuffer& buffer, uint8_t value) {
  if (buffer.bytes() == 0) return absl::OkStatus();
  MYCC_CUDA(MemsetD8Async, AddressOf(buffer.data()), value, static_cast<size_t>(buffer.bytes()), handle_);
  return absl::OkStatus();
}

absl::StatusOr<CudaGraph> CudaStream::Capture(const std::function<absl::Status()>& enqueue) {
  MYCC_CUDA(StreamBeginCapture, handle_, kCudaCaptureThreadLocal);
  is_capturing_ = true;
  const absl::Status enqueued = enqueue();
  is_capturing_ = false;
  Handle graph = nullptr, executable = nullptr;
  const Result ended = opened->StreamEndCapture(handle_, &graph);
  if (!enqueued.ok()) {
    if (graph != nullptr) opened->GraphDestroy(graph);
    return enqueued;
  }
  MYCC_RETURN_IF_ERROR(Check(*opened, "cuStreamEndCapture", ended));
  const Result made = opened->GraphInstantiateWithFlags(&executable, graph, 0);
  opened->GraphDestroy(graph);
  MYCC_RETURN_IF_ERROR(Check(*opened, "cuGraphInstantiate", made));
  return CudaGraph(executable);
}

absl::Status CudaStream::Launch(const CudaGraph& graph) {
  MYCC_CUDA(GraphLaunch, graph.executable_, handle_);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CudaSession>> CudaSession::Open(int ordinal) {
  MYCC_ASSIGN_OR_RETURN(const Driver* driver, TheDriver());
  MYCC_ASSIGN_OR_RETURN(const int device, DeviceOf(*driver, ordinal));
  Handle context = nullptr;
  MYCC_CUDA(DevicePrimaryCtxRetain, &context, device);
  if (const Result pushed = driver->CtxPushCurrent(context); pushed != kCudaSuccess) {
    driver->DevicePrimaryCtxRelease(device);
    return Check(*driver, "cuCtxPushCurrent", pushed);
  }
  return std::unique_ptr<CudaSession>(new CudaSession(ordinal, device));
}

CudaSession::~CudaSession() {
  Handle context = nullptr;
  opened->CtxPopCurrent(&context);
  opened->DevicePrimaryCtxRelease(device_);
}

absl::StatusOr<CudaBuffer> CudaSession::Allocate(int64_t bytes) {
  Address address = 0;
  // The driver refuses to allocate nothing.
  const Result result = opened->MemAlloc(&address, static_cast<size_t>(bytes > 0 ? bytes : 1));
  if (result == kCudaSuccess) return CudaBuffer(reinterpret_cast<void*>(address), bytes);
  size_t free = 0, total = 0;
  opened->MemGetInfo(&free, &total);
  return Check(*opened,
               absl::StrCat("cuMemAlloc of ", bytes, " bytes, where ", free, " of ", total, " are free"),
               result);
}

absl::StatusOr<CudaStream> CudaSession::CreateStream() {
  Handle handle = nullptr;
  MYCC_CUDA(StreamCreate, &handle, kCudaStreamNonBlocking);
  return CudaStream(handle);
}

absl::StatusOr<CudaEvent> CudaSession::CreateEvent() {
  Handle handle = nullptr;
  MYCC_CUDA(EventCreate, &handle, 0);
  return CudaEvent(handle);
}

absl::Status CudaSession::Synchronize() {
  MYCC_CUDA(CtxSynchronize);
  return absl::OkStatus();
}

}  // namespace mycc
