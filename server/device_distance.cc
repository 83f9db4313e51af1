#include "server/device_distance.h"

#include <algorithm>
#include <cmath>

namespace mycc {
namespace {

constexpr double kOtherClass = 8, kOtherModel = 0.5;

double SizesApart(double a, double b) {
  return std::abs(std::log2(std::max<double>(a, 1) / std::max<double>(b, 1)));
}

}  // namespace

std::optional<double> DeviceDistance(const Target& a, const Target& b) {
  if (a.kind != b.kind) return std::nullopt;
  if (a.kind == TargetKind::kCuda) {
    return (CudaArchOf(a) != CudaArchOf(b) ? kOtherClass : 0) + (a.model != b.model ? kOtherModel : 0) +
           SizesApart(a.sms, b.sms);
  }
  const bool is_other_class = VectorBytes(a) != VectorBytes(b) || VectorRegisters(a) != VectorRegisters(b);
  return (is_other_class ? kOtherClass : 0) + (a.mcpu != b.mcpu ? kOtherModel : 0) +
         SizesApart(a.threads, b.threads) + SizesApart(a.l1d_bytes, b.l1d_bytes) / 2 +
         SizesApart(a.l2_bytes, b.l2_bytes) / 2;
}

}  // namespace mycc
