// How much a CPU's micro-benchmarks read for it to be memory that they read.
#include "worker/cpu_constants.h"

#include "gtest/gtest.h"

namespace mycc {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(CpuConstantsTest, MemoryIsWhatNoCacheHolds) {
  // A laptop; a virtual machine of two threads on a server with 300 MiB, and all four threads of one.
  EXPECT_EQ(BytesPastCaches(kMiB, 8 * kMiB, 8, 8), 64 * kMiB);
  EXPECT_EQ(BytesPastCaches(2 * kMiB, 300 * kMiB, 2, 1), 604 * kMiB);
  EXPECT_EQ(BytesPastCaches(2 * kMiB, 300 * kMiB, 128, 4), 616 * kMiB);
}

TEST(CpuConstantsTest, EveryGroupOfThreadsHasAThirdLevel) {
  // Each 16 threads share 32 MiB; what 192 threads have is more than a measurement may take.
  EXPECT_EQ(BytesPastCaches(kMiB, 32 * kMiB, 16, 1), 66 * kMiB);
  EXPECT_EQ(BytesPastCaches(kMiB, 32 * kMiB, 16, 48), 288 * kMiB);
  EXPECT_EQ(BytesPastCaches(kMiB, 32 * kMiB, 16, 192), 0u);
}

}  // namespace
}  // namespace mycc
