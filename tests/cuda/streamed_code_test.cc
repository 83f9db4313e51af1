// The code of attention on GPUs where threads read tiles of the copy engine, or lengths from memory.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/passes/lower.h"
#include "codegen/schedule/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

std::string AttentionWith(const std::string& input, const std::string& scores) {
  return absl::StrCat("workload a(q: bf16[2,512,64], k: bf16[2,512,64], v: bf16[2,512,64], ", input,
                      R"() -> (o: bf16[2,512,64]) {
  s[h,i,j]: f32[2,512,512] = sum[d:64](f32(q[h,i,d]) * f32(k[h,j,d]))
  c[h,i,j]: f32[2,512,512] = )",
                      scores, R"(
  m[h,i]: f32[2,512] = max[j:512](c[h,i,j])
  e[h,i,j]: f32[2,512,512] = exp(c[h,i,j] - m[h,i])
  l[h,i]: f32[2,512] = sum[j:512](e[h,i,j])
  t[h,i,d]: f32[2,512,64] = sum[j:512](f32(bf16(e[h,i,j])) * f32(v[h,j,d]))
  o[h,i,d] = bf16(t[h,i,d] / l[h,i])
})");
}

// The code of the default point with `persist`, which must not spill.
std::string CodeOf(const std::string& text, int64_t persist) {
  const Target target = *ParseTarget("v1 cuda arch=sm_90a model=\"NVIDIA H200\" sms=4 smem=232448 l2=60M");
  const Workload workload = CanonicalWorkload(text);
  const Sketch sketch = GenerateSketches(workload, target).front();
  Choice choice = sketch.default_choice;
  for (size_t d = 0; d < choice.size(); ++d) {
    if (absl::EndsWith(sketch.space.decisions[d].name, ".persist")) choice[d] = static_cast<int>(persist);
  }
  const Schedule schedule = Replay(workload, target, sketch.instantiate(choice).value()).value();
  const CudaProgram program = EmitCuda(Lower(schedule.function(), target).value(), target, "k").value();
  const absl::StatusOr<CudaImage> image = CompileCuda(program.source, target);
  EXPECT_TRUE(image.ok()) << image.status().message();
  if (!image.ok()) return "";
  EXPECT_FALSE(image->serialized_wgmma);
  EXPECT_EQ(image->kernels.front().spill_bytes, 0);
  return program.source;
}

// Addresses in a tile of biases are a thread's own, and constants; a warpgroup waits before it releases one.
TEST(StreamedCodeTest, BiasesInTheRing) {
  for (const int64_t persist : {0, 1}) {
    const std::string code =
        CodeOf(AttentionWith("r: bf16[2,512,512]", "s[h,i,j] * 0.125 + f32(r[h,i,j])"), persist);
    EXPECT_THAT(
        code, testing::ContainsRegex(R"(t3_s.\(swizzle<3, 2>.t5_a1_lr \* 64 \+ t5_a1_lc \* 2. \^ t5_a1_n)"));
    EXPECT_THAT(code, testing::HasSubstr("team_sync(12 + group, 128);"));
  }
}

// The number of turns comes from memory: slots that are counted with it need no register of each thread.
TEST(StreamedCodeTest, LengthsInMemory) {
  const std::string text = AttentionWith("n: i32[2]", "select(j < i64(n[h]), s[h,i,j] * 0.125, -inf)");
  EXPECT_THAT(CodeOf(text, 1), testing::HasSubstr("_counted = __shfl_sync(0xffffffffu, int("));
  EXPECT_THAT(CodeOf(text, 0), testing::HasSubstr("_turns = __shfl_sync(0xffffffffu, int("));
}

}  // namespace
}  // namespace mycc
