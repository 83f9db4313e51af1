// The places of tensors in one block of memory.
#include "codegen/program/memory_plan.h"

#include <gmock/gmock.h>

#include <random>

namespace mycc {
namespace {

int64_t Rounded(int64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

// The bytes of all tensors that live at the busiest step: no plan needs less.
int64_t LowerBound(const std::vector<Lifetime>& tensors, int64_t steps) {
  int64_t most = 0;
  for (int64_t step = 0; step < steps; ++step) {
    int64_t now = 0;
    for (const Lifetime& tensor : tensors)
      now += tensor.first <= step && step <= tensor.last ? Rounded(tensor.bytes) : 0;
    most = std::max(most, now);
  }
  return most;
}

void ExpectSound(const std::vector<Lifetime>& tensors, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % kArenaAlignment, 0);
    EXPECT_GE(plan.offsets[i], 0);
    EXPECT_LE(plan.offsets[i] + tensors[i].bytes, plan.peak_bytes);
    for (size_t k = 0; k < i; ++k) {
      const bool together = tensors[i].first <= tensors[k].last && tensors[k].first <= tensors[i].last;
      const bool apart = plan.offsets[i] + tensors[i].bytes <= plan.offsets[k] ||
                         plan.offsets[k] + tensors[k].bytes <= plan.offsets[i];
      EXPECT_TRUE(!together || apart) << i << " and " << k;
    }
  }
}

TEST(PlanMemoryTest, NothingNeedsNothing) { EXPECT_EQ(PlanMemory({}).peak_bytes, 0); }

TEST(PlanMemoryTest, AChainUsesTwoPlaces) {
  const MemoryPlan plan = PlanMemory({{100, 0, 1}, {100, 1, 2}, {100, 2, 3}, {100, 3, 4}});
  EXPECT_EQ(plan.peak_bytes, 256);
  EXPECT_THAT(plan.offsets, testing::ElementsAre(0, 128, 0, 128));
}

TEST(PlanMemoryTest, SmallTensorsFillGaps) {
  const std::vector<Lifetime> tensors = {{640, 0, 3}, {320, 0, 1}, {320, 2, 3}, {64, 1, 2}};
  const MemoryPlan plan = PlanMemory(tensors);
  ExpectSound(tensors, plan);
  EXPECT_EQ(plan.peak_bytes, LowerBound(tensors, 4));
}

TEST(PlanMemoryTest, RandomLifetimes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    const int64_t steps = 1 + static_cast<int64_t>(random() % 20);
    std::vector<Lifetime> tensors(random() % 40);
    for (Lifetime& tensor : tensors) {
      tensor.bytes = static_cast<int64_t>(random() % (random() % 2 == 0 ? 100 : 5000));
      tensor.first = static_cast<int64_t>(random() % static_cast<uint64_t>(steps));
      tensor.last =
          tensor.first + static_cast<int64_t>(random() % static_cast<uint64_t>(steps - tensor.first));
    }
    const MemoryPlan plan = PlanMemory(tensors);
    ExpectSound(tensors, plan);
    const int64_t bound = LowerBound(tensors, steps);
    EXPECT_GE(plan.peak_bytes, bound);
    // Far from the bound, something is wrong.
    EXPECT_LE(plan.peak_bytes, 2 * bound);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace mycc
