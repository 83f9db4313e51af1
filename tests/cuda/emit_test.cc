// Goldens of emitted CUDA C++, each compiled by NVRTC.
#include "codegen/cuda/emit.h"

#include "absl/strings/str_cat.h"
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

void Check(const std::string& name, const std::string& workload, const std::string& steps) {
  const absl::StatusOr<CudaProgram> program = EmitChecked(workload, steps);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_TRUE(MatchesGolden("cuda/" + name, program->source + Steps(program->call) + Steps(program->pack)));
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

}  // namespace
}  // namespace mycc
