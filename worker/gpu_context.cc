#include "worker/gpu_context.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "codegen/runtime/cuda_device.h"

namespace mycc {
namespace {

constexpr int kThreads = 256, kBlocksAMultiprocessor = 4;

}  // namespace

absl::StatusOr<std::unique_ptr<GpuContext>> GpuContext::Open(const std::string& kernels) {
  MYCC_ASSIGN_OR_RETURN(const CudaDeviceInfo info, DescribeCudaDevice(0));
  MYCC_ASSIGN_OR_RETURN(std::unique_ptr<CudaSession> session, CudaSession::Open(0));
  MYCC_ASSIGN_OR_RETURN(CudaStream stream, session->CreateStream());
  MYCC_ASSIGN_OR_RETURN(CudaStream beside, session->CreateStream());
  std::unique_ptr<GpuContext> device(
      new GpuContext(std::move(session), std::move(stream), std::move(beside)));
  device->multiprocessors_ = info.sms;
  device->l2_bytes_ = info.l2_bytes;
  MYCC_CUDA(device->driver_, ModuleLoadData, &device->module_, kernels.data());
  return device;
}

absl::StatusOr<int64_t> GpuContext::FreeMemory() {
  size_t free = 0, total = 0;
  MYCC_CUDA(driver_, MemGetInfo, &free, &total);
  return static_cast<int64_t>(free);
}

absl::Status GpuContext::Fill(CuAddress to, uint8_t byte, int64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  MYCC_CUDA(driver_, MemsetD8Async, to, byte, static_cast<size_t>(bytes), stream());
  return absl::OkStatus();
}

absl::Status GpuContext::Copy(CuAddress to, CuAddress from, int64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  MYCC_CUDA(driver_, MemcpyDtoDAsync, to, from, static_cast<size_t>(bytes), stream());
  return absl::OkStatus();
}

absl::Status GpuContext::Upload(CuAddress to, const void* from, int64_t bytes) {
  if (bytes > 0) MYCC_CUDA(driver_, MemcpyHtoDAsync, to, from, static_cast<size_t>(bytes), stream());
  return Wait();
}

absl::Status GpuContext::Download(void* to, CuAddress from, int64_t bytes) {
  if (bytes > 0) MYCC_CUDA(driver_, MemcpyDtoHAsync, to, from, static_cast<size_t>(bytes), stream());
  return Wait();
}

absl::Status GpuContext::WaitAtMost(double seconds) {
  constexpr auto kPause = std::chrono::microseconds(20);
  const auto start = std::chrono::steady_clock::now();
  while (driver_->StreamQuery(stream()) == kCudaErrorNotReady) {
    if (std::chrono::steady_clock::now() - start > std::chrono::duration<double>(seconds))
      return absl::DeadlineExceededError(absl::StrFormat("the kernel took longer than %.3g s", seconds));
    std::this_thread::sleep_for(kPause);
  }
  return Wait();
}

int64_t GpuContext::most_threads() const {
  return int64_t{kThreads} * kBlocksAMultiprocessor * multiprocessors_;
}

absl::Status GpuContext::LaunchWith(const char* kernel, int64_t elements, void** arguments) {
  if (elements == 0) return absl::OkStatus();
  const int64_t blocks = std::min<int64_t>((elements + kThreads - 1) / kThreads,
                                           int64_t{kBlocksAMultiprocessor} * multiprocessors_);
  return LaunchOn(stream(), kernel, blocks, kThreads, /*shared_bytes=*/0, arguments);
}

absl::Status GpuContext::LaunchOn(CuStream stream, const char* kernel, int64_t blocks, int threads,
                                  int shared_bytes, void** arguments) {
  CuFunction function = nullptr;
  MYCC_CUDA(driver_, ModuleGetFunction, &function, module_, kernel);
  MYCC_CUDA(driver_, LaunchKernel, function, static_cast<unsigned>(blocks), 1, 1,
            static_cast<unsigned>(threads), 1, 1, static_cast<unsigned>(shared_bytes), stream, arguments,
            nullptr);
  return absl::OkStatus();
}

}  // namespace mycc
