#include "worker/gpu_constants.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/device_constants.h"

namespace mycc {
namespace {

constexpr int kRunsOfEach = 10, kWarmUpRuns = 3;
constexpr int64_t kWholeDevice = int64_t{1} << 40;  // as many threads as the device takes at once
// The kernels' own (worker/measuring_kernels.cu).
constexpr int kChainsOfThread = 8, kBytesOfLoad = 16, kLoadsAtOnce = 4;
constexpr int64_t kLineBytes = 128, kLinesApart = 3;
constexpr int kFmaRoundsOfGpu = 20'000, kChaseLoadsOfGpu = 2'000, kLaunches = 100;
constexpr int64_t kLeastBytes = int64_t{64} << 20, kMostBytes = int64_t{1} << 30;  // of memory that is read
constexpr double kShareOfFree = 0.25, kPastL2 = 16, kWithinL2 = 0.25;
constexpr int64_t kBytesOfL2Run = int64_t{1} << 30;

class GpuConstants {
 public:
  static absl::StatusOr<v1::DeviceConstants> Measure(GpuContext* device) {
    MYCC_ASSIGN_OR_RETURN(const int64_t free, device->FreeMemory());
    const int64_t wanted =
        std::clamp(static_cast<int64_t>(kPastL2) * device->l2_bytes(), kLeastBytes, kMostBytes);
    const int64_t bytes = std::min(wanted, static_cast<int64_t>(kShareOfFree * static_cast<double>(free))) /
                          kLineBytes * kLineBytes;
    if (bytes < 2 * device->l2_bytes())
      return absl::ResourceExhaustedError(absl::StrCat(
          "the device has ", free, " bytes free; expected eight times its L2 of ", device->l2_bytes()));
    MYCC_ASSIGN_OR_RETURN(CudaBuffer memory, device->Allocate(bytes));
    MYCC_ASSIGN_OR_RETURN(CudaEvent start, device->MakeEvent());
    MYCC_ASSIGN_OR_RETURN(CudaEvent end, device->MakeEvent());
    GpuConstants constants(device, std::move(memory), std::move(start), std::move(end));
    MYCC_RETURN_IF_ERROR(device->Fill(constants.memory_.address(), 0, bytes));
    MYCC_RETURN_IF_ERROR(constants.MeasureAll());
    constants.made_.set_version(kConstantsVersion);
    return std::move(constants.made_);
  }

 private:
  GpuConstants(GpuContext* device, CudaBuffer memory, CudaEvent start, CudaEvent end)
      : device_(device), memory_(std::move(memory)), start_(std::move(start)), end_(std::move(end)) {}

  absl::Status MeasureAll() {
    const CuAddress memory = memory_.address();
    // First, so that the clocks are up.
    MYCC_ASSIGN_OR_RETURN(const double fma, Shortest([&] {
                            return device_->Launch("mycc_fma", kWholeDevice, memory, int{kFmaRoundsOfGpu});
                          }));
    const double flops =
        2.0 * kChainsOfThread * kFmaRoundsOfGpu * static_cast<double>(device_->most_threads());
    Put(kPeakOfAll, flops / fma);
    MYCC_ASSIGN_OR_RETURN(const double memory_rate, ReadRateOf(memory_.bytes(), 1));
    Put(kMemoryOfAll, memory_rate);
    const auto within =
        std::max(static_cast<int64_t>(kWithinL2 * static_cast<double>(device_->l2_bytes())), kLineBytes);
    const int passes = static_cast<int>(std::max<int64_t>(1, kBytesOfL2Run / within));
    MYCC_ASSIGN_OR_RETURN(const double l2_rate, ReadRateOf(within, passes));
    Put(kL2OfAll, l2_rate);
    const int64_t lines = memory_.bytes() / kLineBytes;
    int64_t first = 0;  // each run has lines of its own, which L2 does not hold yet
    MYCC_ASSIGN_OR_RETURN(const double chase, Shortest([&] {
                            return device_->Launch("mycc_chase", 1, memory, lines, first += kLinesApart,
                                                   int{kChaseLoadsOfGpu});
                          }));
    Put(kMemoryLatency, chase / kChaseLoadsOfGpu);
    return MeasureLaunch();
  }

  absl::Status MeasureLaunch() {
    MYCC_ASSIGN_OR_RETURN(const CudaGraph graph, device_->Capture([&] {
      MYCC_RETURN_IF_ERROR(device_->Record(start_));
      for (int i = 0; i < kLaunches; ++i)
        MYCC_RETURN_IF_ERROR(device_->Launch("mycc_nothing", 1, memory_.address()));
      return device_->Record(end_);
    }));
    MYCC_ASSIGN_OR_RETURN(const double seconds, ShortestOf([&] { return device_->Launch(graph); }));
    Put(kLaunchTime, seconds / kLaunches);
    return absl::OkStatus();
  }

  // Bytes a second, of a number of passes over the memory's first `bytes`.
  absl::StatusOr<double> ReadRateOf(int64_t bytes, int passes) {
    const int64_t count = bytes / kBytesOfLoad, threads = device_->most_threads();
    const int64_t loads = (count + kLoadsAtOnce * threads - 1) / (kLoadsAtOnce * threads) * kLoadsAtOnce;
    MYCC_ASSIGN_OR_RETURN(const double seconds, Shortest([&] {
                            return device_->Launch("mycc_read", kWholeDevice, memory_.address(), count, loads,
                                                   int{passes});
                          }));
    return static_cast<double>(threads * loads) * kBytesOfLoad * passes / seconds;
  }

  // The shortest run of what is put on the stream.
  absl::StatusOr<double> Shortest(const std::function<absl::Status()>& enqueue) {
    return ShortestOf([&] {
      MYCC_RETURN_IF_ERROR(device_->Record(start_));
      MYCC_RETURN_IF_ERROR(enqueue());
      return device_->Record(end_);
    });
  }
  // The same of what records the events itself.
  absl::StatusOr<double> ShortestOf(const std::function<absl::Status()>& enqueue) {
    double shortest = std::numeric_limits<double>::infinity();
    for (int run = 0; run < kWarmUpRuns + kRunsOfEach; ++run) {
      MYCC_RETURN_IF_ERROR(enqueue());
      MYCC_RETURN_IF_ERROR(device_->Wait());
      MYCC_ASSIGN_OR_RETURN(const double seconds, end_.SecondsSince(start_));
      if (run >= kWarmUpRuns) shortest = std::min(shortest, seconds);
    }
    return shortest;
  }

  void Put(const char* name, double value) { (*made_.mutable_values())[name] = value; }

  GpuContext* const device_;
  CudaBuffer memory_;  // all zero
  CudaEvent start_, end_;
  v1::DeviceConstants made_;
};

}  // namespace

absl::StatusOr<v1::DeviceConstants> MeasureGpuConstants(GpuContext* device) {
  return GpuConstants::Measure(device);
}

}  // namespace mycc
