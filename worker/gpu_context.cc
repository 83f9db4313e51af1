#include "worker/gpu_context.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/strings/str_format.h"
#include "base/status.h"

namespace mycc {
namespace {

constexpr int kMultiprocessors = 16, kL2Bytes = 38;  // attributes of a device
constexpr unsigned kNonBlocking = 1;                 // a stream that waits for no other
constexpr int kRelaxedCapture = 2;
constexpr CudaResult kNotReady = 600;
constexpr unsigned kRecordExternal = 1;  // in a capture: an event whose time can be read
constexpr int kThreads = 256, kBlocksAMultiprocessor = 4;

}  // namespace

#define MYCC_CUDA(call, ...) MYCC_RETURN_IF_ERROR(api_->StatusOf("cu" #call, api_->call(__VA_ARGS__)))

absl::StatusOr<std::unique_ptr<GpuContext>> GpuContext::Open(const std::string& kernels) {
  MYCC_ASSIGN_OR_RETURN(const CudaApi* const api, CudaApi::Open());
  std::unique_ptr<GpuContext> device(new GpuContext(api));
  MYCC_RETURN_IF_ERROR(device->Start(kernels));
  return device;
}

absl::Status GpuContext::Start(const std::string& kernels) {
  int device = 0, l2_bytes = 0;
  void* context = nullptr;
  MYCC_CUDA(DeviceGet, &device, 0);
  MYCC_CUDA(DeviceGetAttribute, &multiprocessors_, kMultiprocessors, device);
  MYCC_CUDA(DeviceGetAttribute, &l2_bytes, kL2Bytes, device);
  l2_bytes_ = l2_bytes;
  MYCC_CUDA(PrimaryCtxRetain, &context, device);
  MYCC_CUDA(CtxSetCurrent, context);
  MYCC_CUDA(StreamCreate, &stream_, kNonBlocking);
  MYCC_CUDA(ModuleLoadData, &module_, kernels.data());
  return absl::OkStatus();
}

absl::StatusOr<GpuMemory> GpuContext::Allocate(int64_t bytes) {
  CudaAddress address = 0;
  MYCC_CUDA(MemAlloc, &address, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
  return GpuMemory(api_, address, bytes);
}

absl::StatusOr<int64_t> GpuContext::FreeMemory() {
  size_t free = 0, total = 0;
  MYCC_CUDA(MemGetInfo, &free, &total);
  return static_cast<int64_t>(free);
}

absl::Status GpuContext::Fill(CudaAddress to, uint8_t byte, int64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  MYCC_CUDA(MemsetD8Async, to, byte, static_cast<size_t>(bytes), stream_);
  return absl::OkStatus();
}

absl::Status GpuContext::Copy(CudaAddress to, CudaAddress from, int64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  MYCC_CUDA(MemcpyDtoDAsync, to, from, static_cast<size_t>(bytes), stream_);
  return absl::OkStatus();
}

absl::Status GpuContext::Upload(CudaAddress to, const void* from, int64_t bytes) {
  if (bytes > 0) MYCC_CUDA(MemcpyHtoDAsync, to, from, static_cast<size_t>(bytes), stream_);
  return Wait();
}

absl::Status GpuContext::Download(void* to, CudaAddress from, int64_t bytes) {
  if (bytes > 0) MYCC_CUDA(MemcpyDtoHAsync, to, from, static_cast<size_t>(bytes), stream_);
  return Wait();
}

absl::Status GpuContext::Wait() {
  MYCC_CUDA(StreamSynchronize, stream_);
  return absl::OkStatus();
}

absl::Status GpuContext::WaitAtMost(double seconds) {
  constexpr auto kPause = std::chrono::microseconds(20);
  const auto start = std::chrono::steady_clock::now();
  while (api_->StreamQuery(stream_) == kNotReady) {
    if (std::chrono::steady_clock::now() - start > std::chrono::duration<double>(seconds))
      return absl::DeadlineExceededError(absl::StrFormat("the kernel took longer than %.3g s", seconds));
    std::this_thread::sleep_for(kPause);
  }
  return Wait();
}

absl::Status GpuContext::LaunchWith(const char* kernel, int64_t elements, void** arguments) {
  if (elements == 0) return absl::OkStatus();
  void* function = nullptr;
  MYCC_CUDA(ModuleGetFunction, &function, module_, kernel);
  const int64_t blocks = std::min<int64_t>((elements + kThreads - 1) / kThreads,
                                           int64_t{kBlocksAMultiprocessor} * multiprocessors_);
  MYCC_CUDA(LaunchKernel, function, static_cast<unsigned>(blocks), 1, 1, kThreads, 1, 1, 0, stream_,
            arguments, nullptr);
  return absl::OkStatus();
}

absl::StatusOr<GpuEvent> GpuContext::MakeEvent() {
  void* event = nullptr;
  MYCC_CUDA(EventCreate, &event, 0);
  return GpuEvent(api_, event);
}

absl::Status GpuContext::Record(const GpuEvent& event) {
  MYCC_CUDA(EventRecordWithFlags, event.get(), stream_, capturing_ ? kRecordExternal : 0);
  return absl::OkStatus();
}

absl::StatusOr<double> GpuContext::SecondsBetween(const GpuEvent& start, const GpuEvent& end) {
  float milliseconds = 0;
  MYCC_CUDA(EventElapsedTime, &milliseconds, start.get(), end.get());
  return static_cast<double>(milliseconds) * 1e-3;
}

absl::StatusOr<GpuGraph> GpuContext::Capture(const std::function<absl::Status()>& enqueue) {
  MYCC_CUDA(StreamBeginCapture, stream_, kRelaxedCapture);
  capturing_ = true;
  const absl::Status enqueued = enqueue();
  capturing_ = false;
  void* captured = nullptr;
  const absl::Status ended = api_->StatusOf("cuStreamEndCapture", api_->StreamEndCapture(stream_, &captured));
  GpuGraph graph(api_, captured);
  MYCC_RETURN_IF_ERROR(enqueued);
  MYCC_RETURN_IF_ERROR(ended);
  MYCC_CUDA(GraphInstantiate, &graph.exec_, graph.graph_, 0);
  return graph;
}

absl::Status GpuContext::Launch(const GpuGraph& graph) {
  MYCC_CUDA(GraphLaunch, graph.exec_, stream_);
  return absl::OkStatus();
}

#undef MYCC_CUDA

}  // namespace mycc
