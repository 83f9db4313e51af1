#include "tuner/cost/model_kind.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

constexpr char kOldCpu[] = "cost-cpu", kOldGpu[] = "cost-cuda", kGpuPrefix[] = "cost-sm_";
constexpr int64_t kServerL2 = 1 << 20;
// From the narrowest instructions to the widest.
constexpr const char* kCpuKinds[] = {"cost-sse", "cost-avx2", "cost-avx512", "cost-avx512-server",
                                     "cost-amx"};

int PlaceOf(const std::string& kind) {
  const auto found = std::find(std::begin(kCpuKinds), std::end(kCpuKinds), kind);
  return static_cast<int>(found - std::begin(kCpuKinds));
}

// 90 for "cost-sm_90a".
int ArchOf(const std::string& kind) {
  constexpr int kMost = 100000;  // whatever a file calls its model
  int arch = 0;
  for (size_t i = std::size(kGpuPrefix) - 1; i < kind.size() && absl::ascii_isdigit(kind[i]) && arch < kMost;
       ++i)
    arch = 10 * arch + (kind[i] - '0');
  return arch;
}

int Distance(const std::string& a, const std::string& b) {
  return IsGpuKind(a) ? std::abs(ArchOf(a) - ArchOf(b)) : std::abs(PlaceOf(a) - PlaceOf(b));
}

}  // namespace

std::string ModelKind(const Target& target) {
  if (target.kind == TargetKind::kCuda) return absl::StrCat("cost-", target.arch);
  const CpuFeatures features = FeaturesOf(target);
  if (features.amx_tile) return "cost-amx";
  if (features.avx512f) return target.l2_bytes >= kServerL2 ? "cost-avx512-server" : "cost-avx512";
  return features.avx2 ? "cost-avx2" : "cost-sse";
}

bool IsGpuKind(const std::string& kind) { return kind == kOldGpu || kind.rfind(kGpuPrefix, 0) == 0; }

std::vector<std::string> NearestKinds(const std::string& kind, const std::vector<std::string>& known) {
  const char* const old = IsGpuKind(kind) ? kOldGpu : kOldCpu;
  std::vector<std::string> kinds;
  for (const std::string& other : known) {
    const bool is_cpu = other == kOldCpu || PlaceOf(other) < static_cast<int>(std::size(kCpuKinds));
    if (IsGpuKind(kind) ? IsGpuKind(other) : is_cpu) kinds.push_back(other);
  }
  const auto order = [&](const std::string& other) {
    return std::tuple(other != kind, other == old, Distance(kind, other), other);
  };
  std::ranges::sort(kinds, [&](const std::string& a, const std::string& b) { return order(a) < order(b); });
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  return kinds;
}

}  // namespace mycc
