#include "tuner/space/gpu_machine.h"

#include <algorithm>

namespace mycc {
namespace {

// To add a family: a row. The first row whose arch begins the target's, and whose model stands in it, is
// taken.
constexpr GpuRow kGpuRows[] = {
    // arch   model   GHz    DRAM    L2     FMA  f64 threads latency
    {"sm_90", "H200", 1.85, 4.3e12, 6.0e12, 128, 64, 2048, 7e-7},
    {"sm_90", "", 1.70, 2.9e12, 5.5e12, 128, 64, 2048, 7e-7},
    {"sm_100", "", 1.85, 7.0e12, 8.0e12, 128, 64, 2048, 8e-7},
    {"sm_89", "", 2.30, 0.80e12, 4.0e12, 128, 2, 1536, 6e-7},
    {"sm_86", "", 1.70, 0.85e12, 2.5e12, 128, 2, 1536, 6e-7},
    {"sm_80", "", 1.40, 1.4e12, 4.0e12, 64, 32, 2048, 6e-7},
};
constexpr GpuRow kUnknownGpu = {"", "", 1.5, 1.0e12, 3.0e12, 64, 2, 1536, 7e-7};
constexpr double kLaunchSeconds = 1.2e-6;
constexpr double kReservedSharedBytes = 1024;  // of each block, for the system

}  // namespace

const GpuRow& GpuRowOf(const Target& target) {
  for (const GpuRow& row : kGpuRows) {
    if (target.arch.compare(0, row.arch.size(), row.arch) == 0 &&
        target.model.find(row.model) != std::string::npos)
      return row;
  }
  return kUnknownGpu;
}

GpuMachine::GpuMachine(const Target& target)
    : row(GpuRowOf(target)),
      target(target),
      sms(std::max(1, target.sms)),
      shared_bytes(static_cast<double>(target.smem_bytes)),
      shared_bytes_of_sm(static_cast<double>(target.smem_bytes) + kReservedSharedBytes),
      l2_bytes(static_cast<double>(target.l2_bytes)),
      launch_seconds(kLaunchSeconds) {}

}  // namespace mycc
