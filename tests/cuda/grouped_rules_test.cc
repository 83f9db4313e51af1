// The rules for tensor cores on products in groups, such as grouped convolutions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/substitute.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/ir/interpreter.h"
#include "codegen/schedule/schedule.h"
#include "codegen/workload/reference.h"
#include "gtest/gtest.h"
#include "tests/cuda/emitted.h"
#include "tests/cuda/rule_points.h"
#include "tests/passes/lowered_function.h"
#include "tests/schedule/testing.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

// Groups of few channels in groups as wide as the copy engine's rows; unless sums are to be direct.
TEST(GroupedRules, FewChannelsAreJoined) {
  constexpr const char* kWorkloads[] = {
      R"(workload c(x: f16[1,6,7,64], w: f16[64,3,3,4], b: f16[64]) -> (y: f16[1,6,7,64]) {
  p[n,i,j,c]: f16[1,8,9,64] = select(1 <= i && 1 <= j && i < 7 && j < 8, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[1,6,7,64] = sum[r:3, s:3, c:4](f32(p[n,i+r,j+s,(k//4)*4+c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(max(a[n,i,j,k] + f32(b[k]), 0.0)) })",
      R"(workload c(x: bf16[2,9,7,128], w: const bf16[128,3,3,8]) -> (y: bf16[2,4,3,128]) {
  a[n,i,j,k]: f32[2,4,3,128] = sum[r:3, s:3, c:8](f32(x[n,i*2+r,j*2+s,(k//8)*8+c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = bf16(a[n,i,j,k]) })"};
  for (const char* text : kWorkloads) {
    const Workload workload = CanonicalWorkload(text);
    Target direct = Sm90a();
    direct.direct_sums = true;
    EXPECT_TRUE(SketchesWith(workload, "join_groups", direct).empty());
    EXPECT_TRUE(SketchesWith(workload, "join_groups", Sm80()).empty());
    const std::vector<Sketch> sketches = SketchesWith(workload, "join_groups", Sm90a());
    ASSERT_EQ(sketches.size(), 2) << text;
    for (const Sketch& sketch : sketches) CheckPointsOf(workload, sketch, Sm90a(), /*count=*/2);
  }
}

// The channels of a group may end within a tile. The next group's follow them there: they are not multiplied
// by zero, since they may be infinite.
TEST(GroupedRules, NeighboursAreNotRead) {
  constexpr const char* kWorkloads[] = {
      R"(workload c(x: f16[1,6,5,39], w: f16[33,3,3,13]) -> (y: f32[1,4,3,33]) {
  y[n,i,j,k] = sum[r:3, s:3, c:13](f32(x[n,i+r,j+s,(k//11)*13+c]) * f32(w[k,r,s,c])) })",
      R"(workload c(x: f16[1,39,6,5], w: f16[33,13,3,3]) -> (y: f32[1,33,4,3]) {
  y[n,k,i,j] = sum[c:13, r:3, s:3](f32(x[n,(k//11)*13+c,i+r,j+s]) * f32(w[k,c,r,s])) })",
      R"(workload c(x: f16[1,6,5,96], w: f16[36,3,3,32]) -> (y: f32[1,4,3,36]) {
  y[n,i,j,k] = sum[r:3, s:3, c:32](f32(x[n,i+r,j+s,(k//12)*32+c]) * f32(w[k,r,s,c])) })",
      R"(workload c(x: f16[1,6,5,120], w: f16[3,16,3,3,40]) -> (y: f32[1,4,3,3,16]) {
  y[n,i,j,g,k] = sum[r:3, s:3, c:40](f32(x[n,i+r,j+s,g*40+c]) * f32(w[g,k,r,s,c])) })"};
  for (const char* text : kWorkloads) {
    const Workload workload = CanonicalWorkload(text);
    std::vector<NDArray> inputs = RandomInputs(workload, 3);
    const Buffer& x = workload.inputs[0].tensor;
    // The middle one of three groups is infinite.
    const int channels = x->shape[1] == 39 ? 1 : 3;
    for (int64_t i = 0; i < inputs[0].num_elements(); ++i) {
      const int64_t channel = i / x->stride(channels) % x->shape[channels];
      if (channel / (x->shape[channels] / 3) == 1)
        inputs[0].Set(i, Scalar{std::numeric_limits<double>::infinity(), 0});
    }
    const absl::StatusOr<std::vector<NDArray>> expected = RunReference(workload, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (const Target& target : {Sm80(), Sm90a()}) {
      for (const Sketch& sketch : GenerateSketches(workload, target)) {
        const absl::StatusOr<LoweredFunction> lowered =
            LowerPoint(workload, sketch, sketch.default_choice, target);
        ASSERT_TRUE(lowered.ok()) << lowered.status();
        const absl::StatusOr<std::vector<NDArray>> actual = RunFunction(WholeFunction(*lowered), inputs, 0);
        ASSERT_TRUE(actual.ok()) << actual.status();
        for (int64_t i = 0; i < (*expected)[0].num_elements(); ++i) {
          const bool is_finite = std::isfinite((*expected)[0].Get(i).f);
          ASSERT_EQ(std::isfinite((*actual)[0].Get(i).f), is_finite) << sketch.name << " at " << i << text;
        }
      }
    }
  }
}

// Channels that are multiplied each for itself have no columns for tensor cores.
TEST(GroupedRules, DepthwiseKeepsItsWindows) {
  for (const Target& target : {Sm80(), Sm90a()}) {
    const std::vector<Sketch> sketches = GenerateSketches(
        CanonicalWorkload(R"(workload c(x: f16[1,16,16,64], w: f16[64,3,3]) -> (y: f32[1,14,14,64]) {
  y[n,i,j,k] = sum[r:3, s:3](f32(x[n,i+r,j+s,k]) * f32(w[k,r,s])) })"),
        target);
    ASSERT_FALSE(sketches.empty());
    EXPECT_EQ(sketches[0].name, "window");
  }
}

// Their turns are short: the compiler must not unroll them, which makes products wait for each other.
TEST(GroupedRules, ShallowProductsOverlap) {
  for (const int64_t channels : {16, 32}) {
    const Workload workload = CanonicalWorkload(absl::Substitute(
        R"(workload c(x: f16[32,16,16,$0], w: f16[$0,3,3,$1]) -> (y: f16[32,14,14,$0]) {
  a[n,i,j,k]: f32[32,14,14,$0] = sum[r:3, s:3, c:$1](f32(x[n,i+r,j+s,k//$1*$1+c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(a[n,i,j,k]) })",
        32 * channels, channels));
    const Sketch sketch = GenerateSketches(workload, Sm90a()).front();
    ASSERT_EQ(sketch.name, "warp_specialized");
    const absl::StatusOr<LoweredFunction> lowered =
        LowerPoint(workload, sketch, sketch.default_choice, Sm90a());
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const absl::StatusOr<CudaProgram> program = EmitCuda(*lowered, Sm90a(), "k");
    ASSERT_TRUE(program.ok()) << program.status();
    const absl::StatusOr<CudaImage> image = CompileCuda(program->source, Sm90a());
    ASSERT_TRUE(image.ok()) << image.status();
    EXPECT_FALSE(image->serialized_wgmma)
        << PrintTrace(*sketch.instantiate(sketch.default_choice)) << image->log;
  }
}

// Groups whose channels are parts of one line of memory may be innermost in the grid; other batches are not.
TEST(GroupedRules, GroupsOfOneLineMayRunTogether) {
  const auto has_near = [](const char* text, const Target& target) {
    const Sketch sketch = GenerateSketches(CanonicalWorkload(text), target).front();
    return std::ranges::any_of(sketch.space.decisions,
                               [](const Decision& decision) { return decision.name == "t2.near"; });
  };
  for (const Target& target : {Sm80(), Sm90a()}) {
    EXPECT_TRUE(has_near(R"(workload c(x: f16[64,96], w: f16[96,32]) -> (y: f32[64,96]) {
  y[i,k] = sum[c:32](f32(x[i,k//32*32+c]) * f32(w[k,c])) })",
                         target));
    EXPECT_FALSE(has_near(R"(workload c(x: f16[64,192], w: f16[96,64]) -> (y: f32[64,96]) {
  y[i,k] = sum[c:64](f32(x[i,k//32*64+c]) * f32(w[k,c])) })",
                          target));
    EXPECT_FALSE(has_near(R"(workload c(x: f16[3,64,32], w: f16[3,32,32]) -> (y: f32[3,64,32]) {
  y[g,i,k] = sum[c:32](f32(x[g,i,c]) * f32(w[g,k,c])) })",
                          target));
  }
}

// Groups of few channels leave most of a tensor core's tile empty: windows on ordinary cores are the
// alternative where the image is contiguous.
TEST(GroupedRules, FewChannelsHaveAnAlternative) {
  const Workload workload =
      CanonicalWorkload(R"(workload c(x: f16[1,16,10,10], w: f16[16,4,3,3]) -> (y: f32[1,16,8,8]) {
  y[n,k,i,j] = sum[c:4, r:3, s:3](f32(x[n,(k//4)*4+c,i+r,j+s]) * f32(w[k,c,r,s])) })");
  for (const Target& target : {Sm80(), Sm90a()}) {
    const std::vector<Sketch> sketches = GenerateSketches(workload, target);
    ASSERT_EQ(sketches.size(), 2);
    EXPECT_EQ(sketches[0].name, "multistage");
    EXPECT_EQ(sketches[1].name, "window");
    for (const Sketch& sketch : sketches) CheckPoint(workload, sketch, sketch.default_choice, target);
  }
}

}  // namespace
}  // namespace mycc
