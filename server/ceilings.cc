#include "server/ceilings.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

namespace mycc {
namespace {

// The shortest call there is: of a function, and of a kernel's launch.
constexpr double kLeastCpuSeconds = 1e-9;
constexpr double kLeastGpuSeconds = 1e-7;
constexpr double kCpuHertz = 8e9;
constexpr double kGpuHertz = 4e9;
// In a cycle, of a thread or of a multiprocessor: eight-bit operations of tile registers and of tensor cores,
// and stores to the nearest cache.
constexpr double kTileFlops = 4096, kVectorFlops = 512, kGpuFlops = 32768;
constexpr double kCpuBytes = 128, kGpuBytes = 256;
// Products that need fewer multiplications than they say (Winograd's), and sums that are taken out of sums.
constexpr double kAlgebra = 16;

bool HasSelect(const Workload& workload) {
  std::unordered_set<const ExprNode*> seen;
  const std::function<bool(const Expr&)> has_select = [&](const Expr& expr) {
    if (!seen.insert(expr.get()).second) return false;
    return expr->op == Op::kSelect || std::ranges::any_of(expr->args, has_select);
  };
  return std::ranges::any_of(workload.stages, [&](const Stage& stage) { return has_select(stage.value); });
}

double OutputBytes(const Workload& workload) {
  double bytes = 0;
  for (const Buffer& output : workload.outputs) bytes += static_cast<double>(output->bytes());
  return bytes;
}

}  // namespace

double LeastSeconds(const Workload& workload, const Target& target) {
  double least = kLeastGpuSeconds, flops_a_second = 0, bytes_a_second = 0;
  if (target.kind == TargetKind::kCuda) {
    flops_a_second = kGpuHertz * target.sms * kGpuFlops;
    bytes_a_second = kGpuHertz * target.sms * kGpuBytes;
  } else {
    least = kLeastCpuSeconds;
    flops_a_second = kCpuHertz * target.threads * (FeaturesOf(target).amx_tile ? kTileFlops : kVectorFlops);
    bytes_a_second = kCpuHertz * target.threads * kCpuBytes;
  }
  least = std::max(least, OutputBytes(workload) / bytes_a_second);
  // A select's other arm need not be computed, and neither need products with its zeros.
  if (!HasSelect(workload)) least = std::max(least, CountFlops(workload) / (kAlgebra * flops_a_second));
  return least;
}

}  // namespace mycc
