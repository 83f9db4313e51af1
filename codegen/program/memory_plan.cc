#include "codegen/program/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace mycc {

MemoryPlan PlanMemory(const std::vector<Lifetime>& tensors) {
  const auto rounded = [&](size_t i) {
    return (tensors[i].bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  };
  std::vector<size_t> by_size(tensors.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::ranges::stable_sort(by_size, [&](size_t a, size_t b) { return tensors[a].bytes > tensors[b].bytes; });
  MemoryPlan plan;
  plan.offsets.resize(tensors.size());
  std::vector<size_t> placed;  // by offset
  for (size_t i : by_size) {
    int64_t offset = 0;
    for (size_t other : placed) {
      const bool together =
          tensors[other].first <= tensors[i].last && tensors[i].first <= tensors[other].last;
      if (!together) continue;
      if (plan.offsets[other] >= offset + rounded(i)) break;
      offset = std::max(offset, plan.offsets[other] + rounded(other));
    }
    plan.offsets[i] = offset;
    plan.peak_bytes = std::max(plan.peak_bytes, offset + rounded(i));
    placed.insert(std::ranges::upper_bound(
                      placed, i, [&](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; }),
                  i);
  }
  return plan;
}

}  // namespace mycc
