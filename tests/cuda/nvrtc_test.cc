// Compiles to machine code without a GPU, with the NVRTC of tests/requirements.txt.
#include "codegen/cuda/nvrtc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Target TargetOf(const std::string& arch) {
  return ParseTarget("cuda arch=" + arch + " model=\"any\" sms=1 smem=99K l2=1M").value();
}

constexpr char kAdd[] = R"(
extern "C" __global__ void __launch_bounds__(256) add(const float* __restrict__ a, float* __restrict__ b) {
  __shared__ float tile[64];
  const int unused = threadIdx.x / 64;
  tile[threadIdx.x % 64] = a[threadIdx.x];
  __syncthreads();
  b[threadIdx.x] = tile[0];
}
)";

class NvrtcArchTest : public ::testing::TestWithParam<const char*> {};

TEST_P(NvrtcArchTest, CompilesToACubin) {
  const absl::StatusOr<CudaImage> image = CompileCuda(kAdd, TargetOf(GetParam()));
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_THAT(image->cubin, StartsWith("\x7f"
                                       "ELF"));
  ASSERT_EQ(image->kernels.size(), 1u);
  EXPECT_EQ(image->kernels[0].kernel, "add");
  EXPECT_GT(image->kernels[0].registers, 0);
  EXPECT_EQ(image->kernels[0].spill_bytes, 0);
  EXPECT_EQ(image->kernels[0].shared_bytes, 256);
  EXPECT_EQ(image->log, "");
}

INSTANTIATE_TEST_SUITE_P(Archs, NvrtcArchTest,
                         ::testing::Values("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Nvrtc, SpillsAreReported) {
  // 200 live values in 24 registers.
  const std::string source = R"(
extern "C" __global__ void __launch_bounds__(1024, 2) spills(const float* a, float* b) {
  float x[200];
#pragma unroll
  for (int i = 0; i < 200; ++i) x[i] = a[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 200; ++i) b[i * 1024 + threadIdx.x] = x[199 - i] * x[i];
}
)";
  const absl::StatusOr<CudaImage> image = CompileCuda(source, TargetOf("sm_90a"));
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_GT(image->kernels[0].spill_bytes, 0);
  EXPECT_LE(image->kernels[0].registers, 32);
}

// A float that wgmma is still adding to is read: the compiler waits after each instruction.
TEST(Nvrtc, SerializedTensorCoresAreReported) {
  const std::string source = R"(
__device__ __noinline__ void multiply(unsigned long long d, float* r) {
  asm volatile("wgmma.fence.sync.aligned;\n"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %4, 1, 1, 1, 0, 0;\n"
               "wgmma.commit_group.sync.aligned;\n"
               : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3]) : "l"(d) : "memory");
}
extern "C" __global__ void k(unsigned long long d, float* o, int n) {
  float r[4] = {0, 0, 0, 0};
  for (int i = 0; i < n; ++i) multiply(d + i, r);
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  o[threadIdx.x] = r[0] + r[1] + r[2] + r[3];
}
)";
  const absl::StatusOr<CudaImage> image = CompileCuda(source, TargetOf("sm_90a"));
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_TRUE(image->serialized_wgmma) << image->log;
}

TEST(Nvrtc, PtxNamesTheArchitecture) {
  const absl::StatusOr<std::string> ptx = CompileToPtx(kAdd, TargetOf("sm_90a"));
  ASSERT_TRUE(ptx.ok()) << ptx.status();
  EXPECT_THAT(*ptx, HasSubstr(".target sm_90a"));
  EXPECT_THAT(*ptx, HasSubstr(".entry add("));
}

TEST(Nvrtc, ErrorsAreNvrtcsWords) {
  const absl::Status wrong = CompileCuda("__global__ void k() { nonsense; }", TargetOf("sm_80")).status();
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("identifier \"nonsense\" is undefined"));

  const absl::Status unknown = CompileCuda(kAdd, TargetOf("sm_99")).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("sm_99"));
}

TEST(Nvrtc, ToolchainHasTheVersion) { EXPECT_THAT(CudaToolchain().value(), StartsWith("nvrtc-13.")); }

}  // namespace
}  // namespace mycc
