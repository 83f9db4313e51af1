// A product takes its operand from the registers of its threads: attention over keys that are one tile. The
// interpreter, and emitted code on the host, compute what the reference computes. The code compiles and keeps
// everything in registers.
#include "tests/passes/chained_products.h"

#include <string>

#include "codegen/cuda/nvrtc.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/emitted.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

void CheckWarps(const std::string& workload, const std::string& steps, double tolerance) {
  const absl::StatusOr<ScheduledCase> products = CaseOf(workload, steps);
  ASSERT_TRUE(products.ok()) << products.status();
  const absl::StatusOr<CudaProgram> program = EmitChecked(*products);
  EXPECT_TRUE(program.ok()) << program.status();
  const absl::Status same = CheckOnHost({*products}, tolerance).front();
  EXPECT_TRUE(same.ok()) << same.message();
}

TEST(ChainedProductsTest, OfWarps) { CheckWarps(kAttention, AttentionOfWarps(), 1e-2); }

// Two warps reduce a row together, and take the weights from shared memory.
TEST(ChainedProductsTest, OfWarpsThatShareRows) { CheckWarps(kAttention, AttentionOfWarps(2, 2), 1e-2); }

TEST(ChainedProductsTest, OfAWarpgroup) {
  const absl::StatusOr<ScheduledCase> attention = CaseOf(kAttention, AttentionOfAWarpgroup());
  ASSERT_TRUE(attention.ok()) << attention.status();
  const absl::StatusOr<LoweredFunction> lowered = Lower(attention->function, Sm90a());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const absl::Status same = CheckLowered(attention->canonical, *lowered, 1e-2);
  EXPECT_TRUE(same.ok()) << same.message() << PrintLowered(*lowered);
  const absl::StatusOr<CudaProgram> program = EmitChecked(*attention, {Sm90a()});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_FALSE(CompileCuda(program->source, Sm90a())->serialized_wgmma) << program->source;
  // The weights wait for their product in pairs: 64 x 64 elements of 128 threads.
  EXPECT_THAT(program->source, ::testing::HasSubstr("unsigned t6[16];"));
}

// An operand that is loaded from memory into the registers of the threads that multiply it.
TEST(ChainedProductsTest, AnOperandFromMemory) {
  CheckWarps(R"(workload w(a: f16[60,40], b: f16[32,40]) -> (c: f32[60,32]) {
  c[i,j] = sum[k:40](f32(a[i,k]) * f32(b[j,k]))
})",
             R"(split(t2.a0, [64])
split(t2.r0, [16])
reorder([t2.a0.0, t2.r0.0, t2.a0.1, t2.a1, t2.r0.1])
bind(t2.a0.0, block)
cache_write(t2, t2.a0.0)
stage_shared(t2, t0, t2.r0.0, shared)
set_scope(t0.s, local)
stage_shared(t2, t1, t2.r0.0, shared)
tensorize_tile(t2.a0.1, mma.f16, 4, 1)
)",
             1e-3);
}

}  // namespace
}  // namespace mycc
