// Goldens of emitted CUDA C++, each compiled by NVRTC.
#include "codegen/cuda/emit.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/emitted.h"
#include "tests/golden/golden.h"

namespace mycc {
namespace {

std::string Steps(const std::vector<CudaStep>& steps) {
  std::string text;
  for (const CudaStep& step : steps) {
    absl::StrAppend(&text, "// ", step.kernel, ": ", step.grid[0], " blocks of ", step.threads, " threads");
    if (step.shared_bytes > 0) absl::StrAppend(&text, ", ", step.shared_bytes, " bytes shared");
    for (const CudaOperand& operand : step.pointers)
      absl::StrAppend(&text, ", ", operand.argument, "+", operand.offset);
    absl::StrAppend(&text, "\n");
  }
  return text;
}

void Check(const std::string& name, const std::string& workload, const std::string& steps,
           double tolerance = 1e-5) {
  const absl::StatusOr<ScheduledCase> gpu_case = CaseOf(workload, steps);
  ASSERT_TRUE(gpu_case.ok()) << gpu_case.status().message();
  const absl::StatusOr<CudaProgram> program = EmitChecked(*gpu_case);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_TRUE(MatchesGolden("cuda/" + name, program->source + Steps(program->call) + Steps(program->pack)));
  const absl::Status status = CheckOnHost({*gpu_case}, tolerance)[0];
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(EmitCudaTest, Elementwise) {
  Check("elementwise", R"(workload w(x: f32[64,512], b: f32[512]) -> (y: f32[64,512]) {
  y[i,j] = max(x[i,j] + b[j], 0.0) * 0.5
})",
        "fuse([t2.a0, t2.a1])\nsplit(t2.a0+a1, [256, 4])\nbind(t2.a0+a1.0, block)\n"
        "bind(t2.a0+a1.1, thread)\nbind(t2.a0+a1.2, vector)\n");
}

TEST(EmitCudaTest, NarrowFloatsComeInSixteenBytes) {
  Check("elementwise_bf16", R"(workload w(x: bf16[64,512], y: bf16[64,512]) -> (z: bf16[64,512]) {
  z[i,j] = x[i,j] * y[i,j]
})",
        "split(t2.a1, [32, 8])\nbind(t2.a0, block)\nbind(t2.a1.0, unroll)\nbind(t2.a1.1, thread)\n"
        "bind(t2.a1.2, vector)\n");
}

TEST(EmitCudaTest, FloatsOfEightBitsComeInSixteenBytes) {
  Check("elementwise_f8e4m3", R"(workload w(x: f8e4m3[64,512], y: f8e5m2[64,512]) -> (z: f8e4m3[64,512]) {
  z[i,j] = f8e4m3(f32(x[i,j]) * f32(y[i,j]))
})",
        "split(t2.a1, [16])\nbind(t2.a0, block)\nbind(t2.a1.0, thread)\nbind(t2.a1.1, vector)\n");
}

TEST(EmitCudaTest, NaiveNests) {
  Check(
      "naive",
      R"(workload w(x: f32[30,40], w: const f32[40,20], v: f32[9,700]) -> (y: f32[30,20], s: f32[9], p: i32[30]) {
  y[i,j] = sum[k:40](x[i,k] * w[k,j])
  s[i] = max[k:700](v[i,k])
  p[i] = argmax[k:40](x[i,k])
})",
      "");
}

TEST(EmitCudaTest, TilesInSharedMemory) {
  Check("tiles", R"(workload gemm(a: f32[70,40], b: f32[40,64]) -> (c: f32[70,64]) {
  c[i,j] = sum[k:40](a[i,k] * b[k,j])
})",
        "split(t2.a0, [8, 4])\nsplit(t2.a1, [8, 4])\nsplit(t2.r0, [16])\n"
        "reorder([t2.a0.0, t2.a1.0, t2.a0.1, t2.a1.1, t2.r0.0, t2.r0.1, t2.a0.2, t2.a1.2])\n"
        "bind(t2.a0.0, block)\nbind(t2.a1.0, block)\ncache_write(t2, t2.a1.0)\n"
        "reorder([t2.r0.0, t2.a0.1, t2.a1.1])\nbind(t2.a0.1, thread)\nbind(t2.a1.1, thread)\n"
        "bind(t2.i.a0.1, thread)\nbind(t2.i.a1.1, thread)\nbind(t2.w.a0.1, thread)\n"
        "bind(t2.w.a1.1, thread)\nbind(t2.w.a1.2, vector)\nbind(t2.r0.1, unroll)\n"
        "cache_read(t0, t2, t2.r0.0, shared)\nlayout(t0.r, 4, 0)\nfuse([t0.r.a0, t0.r.a1])\n"
        "split(t0.r.a0+r.a1, [64, 4])\nbind(t0.r.a0+r.a1.1, thread)\nbind(t0.r.a0+r.a1.2, vector)\n"
        "cache_read(t1, t2, t2.r0.0, shared)\nfuse([t1.r.a0, t1.r.a1])\n"
        "split(t1.r.a0+r.a1, [64, 4])\nbind(t1.r.a0+r.a1.1, thread)\nbind(t1.r.a0+r.a1.2, vector)\n");
}

TEST(EmitCudaTest, RowsInRegisters) {
  const std::string along =
      "split(A, [2, 32, 4])\nreorder([ROW, A.2, A.0, A.1, A.3])\nbind(ROW, thread)\nbind(A.2, thread)\n"
      "bind(A.1, unroll)\nbind(A.3, vector)\n";
  const auto stage = [&](const std::string& row, const std::string& loop) {
    return absl::StrReplaceAll(along, {{"ROW", row}, {"A", loop}});
  };
  Check("softmax", R"(workload softmax(x: f32[50,250]) -> (y: f32[50,250]) {
  m[i]: f32[50] = max[j:250](x[i,j])
  e[i,j]: f32[50,250] = exp(x[i,j] - m[i])
  s[i]: f32[50] = sum[j:250](e[i,j])
  y[i,j] = e[i,j] / s[i]
})",
        "split(t4.a0, [4])\nbind(t4.a0.0, block)\ncompute_at(t3, t4.a0.0)\ncompute_at(t2, t4.a0.0)\n"
        "compute_at(t1, t4.a0.0)\ncache_read(t0, all, t4.a0.0, local)\n" +
            stage("t0.r.a0", "t0.r.a1") + stage("t1.a0", "t1.r0") + stage("t2.a0", "t2.a1") +
            stage("t3.a0", "t3.r0") + stage("t4.a0.1", "t4.a1"));
}

// A tensor whose elements are each read once, for a much smaller result, leaves the caches first.
TEST(EmitCudaTest, WhatIsReadOnceLeavesTheCachesFirst) {
  const auto source = [](const std::string& workload, const std::string& steps) {
    const absl::StatusOr<ScheduledCase> gpu_case = CaseOf(workload, steps);
    EXPECT_TRUE(gpu_case.ok()) << gpu_case.status().message();
    const absl::StatusOr<CudaProgram> program = EmitChecked(*gpu_case);
    EXPECT_TRUE(program.ok()) << program.status().message();
    return program->source;
  };
  const std::string rows = "split(t1.r0, [4])\nbind(t1.a0, thread)\nbind(t1.r0.1, vector)\n";
  EXPECT_THAT(source("workload w(x: f32[64,256]) -> (s: f32[64]) {\n  s[i] = sum[k:256](x[i,k])\n}\n", rows),
              testing::HasSubstr("= load_once<4>("));
  // Written as much as read.
  EXPECT_THAT(source("workload w(x: f32[64,256]) -> (y: f32[64,256]) {\n  y[i,j] = x[i,j] + 1.0\n}\n",
                     "split(t1.a1, [4])\nbind(t1.a0, thread)\nbind(t1.a1.1, vector)\n"),
              testing::HasSubstr("= load_vec<4>("));
}

}  // namespace
}  // namespace mycc
