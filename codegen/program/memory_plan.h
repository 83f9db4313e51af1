// Plans offsets of tensors in one block of memory: tensors that live at the same time do not overlap. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace mycc {

struct Lifetime {
  int64_t bytes;
  int64_t first, last;  // the numbers of the first and the last step that use it, inclusive
};

inline constexpr int64_t kArenaAlignment = 64;

struct MemoryPlan {
  std::vector<int64_t> offsets;  // of each tensor, in bytes, aligned to kArenaAlignment
  int64_t peak_bytes = 0;        // the end of the block
};

// Greedy by size: the largest tensor first, each at the lowest offset where it overlaps no tensor that lives
// with it.
MemoryPlan PlanMemory(const std::vector<Lifetime>& tensors);

}  // namespace mycc
