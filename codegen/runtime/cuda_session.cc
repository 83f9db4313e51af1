#include "codegen/runtime/cuda_session.h"

#include "absl/strings/str_cat.h"
#include "codegen/runtime/cuda_device.h"

namespace mycc {

CudaBuffer& CudaBuffer::operator=(CudaBuffer&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
CudaBuffer::~CudaBuffer() {
  if (address_ != 0) driver_->MemFree(address_);
}

absl::Status CudaBuffer::Write(const void* host) {
  if (bytes_ == 0) return absl::OkStatus();
  MYCC_CUDA(driver_, MemcpyHtoD, address_, host, static_cast<size_t>(bytes_));
  return absl::OkStatus();
}

absl::Status CudaBuffer::Read(void* host) const {
  if (bytes_ == 0) return absl::OkStatus();
  MYCC_CUDA(driver_, MemcpyDtoH, host, address_, static_cast<size_t>(bytes_));
  return absl::OkStatus();
}

CudaGraph::CudaGraph(CudaGraph&& other) noexcept
    : driver_(other.driver_), executable_(std::exchange(other.executable_, nullptr)) {}
CudaGraph::~CudaGraph() {
  if (executable_ != nullptr) driver_->GraphExecDestroy(executable_);
}

CudaEvent::CudaEvent(CudaEvent&& other) noexcept
    : driver_(other.driver_), handle_(std::exchange(other.handle_, nullptr)) {}
CudaEvent::~CudaEvent() {
  if (handle_ != nullptr) driver_->EventDestroy(handle_);
}

absl::StatusOr<double> CudaEvent::SecondsSince(const CudaEvent& earlier) const {
  float milliseconds = 0;
  MYCC_CUDA(driver_, EventElapsedTime, &milliseconds, earlier.handle_, handle_);
  return milliseconds * 1e-3;
}

CudaStream::CudaStream(CudaStream&& other) noexcept
    : driver_(other.driver_),
      handle_(std::exchange(other.handle_, nullptr)),
      is_capturing_(other.is_capturing_) {}
CudaStream::~CudaStream() {
  if (handle_ != nullptr) driver_->StreamDestroy(handle_);
}

absl::Status CudaStream::Synchronize() {
  MYCC_CUDA(driver_, StreamSynchronize, handle_);
  return absl::OkStatus();
}

absl::Status CudaStream::Record(const CudaEvent& event) {
  // An event that a graph records can be read only with this flag.
  const unsigned flags = is_capturing_ ? kCudaEventRecordExternal : 0;
  MYCC_CUDA(driver_, EventRecordWithFlags, event.handle_, handle_, flags);
  return absl::OkStatus();
}

absl::Status CudaStream::Fill(const CudaBuffer& buffer, uint8_t value) {
  if (buffer.bytes() == 0) return absl::OkStatus();
  MYCC_CUDA(driver_, MemsetD8Async, buffer.address(), value, static_cast<size_t>(buffer.bytes()), handle_);
  return absl::OkStatus();
}

absl::StatusOr<CudaGraph> CudaStream::Capture(const std::function<absl::Status()>& enqueue) {
  MYCC_CUDA(driver_, StreamBeginCapture, handle_, kCudaCaptureThreadLocal);
  is_capturing_ = true;
  const absl::Status enqueued = enqueue();
  is_capturing_ = false;
  CuGraph graph = nullptr;
  const CuResult ended = driver_->StreamEndCapture(handle_, &graph);
  if (!enqueued.ok()) {
    if (graph != nullptr) driver_->GraphDestroy(graph);
    return enqueued;
  }
  MYCC_RETURN_IF_ERROR(driver_->StatusOf("cuStreamEndCapture", ended));
  CuGraphExec executable = nullptr;
  const CuResult made = driver_->GraphInstantiate(&executable, graph, 0);
  driver_->GraphDestroy(graph);
  MYCC_RETURN_IF_ERROR(driver_->StatusOf("cuGraphInstantiate", made));
  return CudaGraph(driver_, executable);
}

absl::Status CudaStream::Launch(const CudaGraph& graph) {
  MYCC_CUDA(driver_, GraphLaunch, graph.executable_, handle_);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CudaSession>> CudaSession::Open(int ordinal) {
  MYCC_ASSIGN_OR_RETURN(const CudaDriver* const driver, CudaDriver::Open());
  MYCC_ASSIGN_OR_RETURN(const CuDevice device, CudaDeviceOf(*driver, ordinal));
  CuContext context = nullptr;
  MYCC_CUDA(driver, DevicePrimaryCtxRetain, &context, device);
  if (const CuResult pushed = driver->CtxPushCurrent(context); pushed != kCudaSuccess) {
    driver->DevicePrimaryCtxRelease(device);
    return driver->StatusOf("cuCtxPushCurrent", pushed);
  }
  return std::unique_ptr<CudaSession>(new CudaSession(driver, ordinal, device));
}

CudaSession::~CudaSession() {
  CuContext context = nullptr;
  driver_->CtxPopCurrent(&context);
  driver_->DevicePrimaryCtxRelease(device_);
}

absl::StatusOr<CudaBuffer> CudaSession::Allocate(int64_t bytes) {
  CuAddress address = 0;
  // The driver refuses to allocate 0 bytes.
  const CuResult result = driver_->MemAlloc(&address, static_cast<size_t>(bytes > 0 ? bytes : 1));
  if (result == kCudaSuccess) return CudaBuffer(driver_, address, bytes);
  if (result != kCudaErrorOutOfMemory) return driver_->StatusOf("cuMemAlloc", result);
  size_t free = 0, total = 0;
  MYCC_CUDA(driver_, MemGetInfo, &free, &total);
  return driver_->StatusOf(
      absl::StrCat("cuMemAlloc of ", bytes, " bytes, where ", free, " of ", total, " are free"), result);
}

absl::StatusOr<CudaStream> CudaSession::CreateStream() {
  CuStream handle = nullptr;
  MYCC_CUDA(driver_, StreamCreate, &handle, kCudaStreamNonBlocking);
  return CudaStream(driver_, handle);
}

absl::StatusOr<CudaEvent> CudaSession::CreateEvent() {
  CuEvent handle = nullptr;
  MYCC_CUDA(driver_, EventCreate, &handle, 0);
  return CudaEvent(driver_, handle);
}

absl::Status CudaSession::Synchronize() {
  MYCC_CUDA(driver_, CtxSynchronize);
  return absl::OkStatus();
}

}  // namespace mycc
