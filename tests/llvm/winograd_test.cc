// Convolutions by Winograd as the rules schedule them: compiled for AVX2 and AVX-512, they compute what the
// reference computes.
#include <random>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/llvm/sketch_points.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

constexpr double kTolerance = 5e-5;  // for outputs of a few units

const char* const kWorkloads[] = {
    // Tiles that reach past the edge, a tail of channels and of filters.
    R"(workload c(x: f32[1,9,14,35], w: const f32[41,35,3,3], b: const f32[41]) -> (y: f32[1,9,14,41]) {
  p[n,i,j,c]: f32[1,11,16,35] = select(1 <= i && i < 10 && 1 <= j && j < 15, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[1,9,14,41] = sum[r:3, s:3, c:35](p[n,i+r,j+s,c] * w[k,c,r,s])
  y[n,i,j,k] = max(a[n,i,j,k] + b[k], 0.0)
})",
    // A batch, no padding, weights that are not const, the bare sum.
    R"(workload c(x: f32[3,10,8,32], w: f32[32,32,3,3]) -> (y: f32[3,8,6,32]) {
  y[n,i,j,k] = sum[r:3, s:3, c:32](x[n,i+r,j+s,c] * w[k,c,r,s])
})",
    // Uneven padding; a residual and an activation that reads the sum twice; weights in another order.
    R"(workload c(x: f32[2,8,8,32], w: const f32[3,3,32,32], q: f32[2,8,8,32]) -> (y: f32[2,8,8,32]) {
  p[n,i,j,c]: f32[2,10,10,32] = select(2 <= i && 2 <= j, x[n,i-2,j-2,c], 0.0)
  a[n,i,j,k]: f32[2,8,8,32] = sum[r:3, s:3, c:32](p[n,i+r,j+s,c] * w[r,s,c,k])
  d[n,i,j,k]: f32[2,8,8,32] = a[n,i,j,k] + q[n,i,j,k]
  y[n,i,j,k] = d[n,i,j,k] * tanh(d[n,i,j,k])
})",
    // Channels in blocks of 16, filters in blocks of 8.
    R"(workload c(x: f32[2,2,5,6,16], w: const f32[40,32,3,3], b: const f32[40]) -> (y: f32[2,5,5,6,8]) {
  p[n,d,i,j,e]: f32[2,2,7,8,16] = select(1 <= i && i < 6 && 1 <= j && j < 7, x[n,d,i-1,j-1,e], 0.0)
  a[n,l,i,j,m]: f32[2,5,5,6,8] = sum[d:2, r:3, s:3, e:16](p[n,d,i+r,j+s,e] * w[l*8+m,d*16+e,r,s])
  y[n,l,i,j,m] = max(a[n,l,i,j,m] + b[l*8+m], 0.0)
})",
    // NCHW: squares of the copy that reach past both edges, a tail of filters.
    R"(workload c(x: f32[2,37,5,19], w: const f32[41,37,3,3], b: const f32[41]) -> (y: f32[2,41,5,19]) {
  p[n,c,i,j]: f32[2,37,7,21] = select(1 <= i && i < 6 && 1 <= j && j < 20, x[n,c,i-1,j-1], 0.0)
  a[n,k,i,j]: f32[2,41,5,19] = sum[c:37, r:3, s:3](p[n,c,i+r,j+s] * w[k,c,r,s])
  y[n,k,i,j] = max(a[n,k,i,j] + b[k], 0.0)
})",
    // bf16 and f16, which are widened: an image as it comes, and one that is turned.
    R"(workload c(x: bf16[1,9,10,35], w: const bf16[41,35,3,3], b: const f32[41]) -> (y: f32[1,9,10,41]) {
  p[n,i,j,c]: bf16[1,11,12,35] = select(1 <= i && i < 10 && 1 <= j && j < 11, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[1,9,10,41] = sum[r:3, s:3, c:35](f32(p[n,i+r,j+s,c]) * f32(w[k,c,r,s]))
  y[n,i,j,k] = max(a[n,i,j,k] + b[k], 0.0)
})",
    R"(workload c(x: f16[2,37,5,19], w: const f16[41,37,3,3]) -> (y: f32[2,41,5,19]) {
  p[n,c,i,j]: f16[2,37,7,21] = select(1 <= i && i < 6 && 1 <= j && j < 20, x[n,c,i-1,j-1], 0.0)
  y[n,k,i,j] = sum[c:37, r:3, s:3](f32(p[n,c,i+r,j+s]) * f32(w[k,c,r,s]))
})",
    // NCHW without padding.
    R"(workload c(x: f32[32,6,8], w: f32[32,32,3,3]) -> (y: f32[32,4,6]) {
  y[k,i,j] = sum[c:32, r:3, s:3](w[k,c,r,s] * x[c,i+r,j+s])
})",
};

class WinogradPointsTest : public testing::TestWithParam<const char*> {};

// Random points, after the default one.
void CheckPointsOf(const Workload& canonical, const Target& target, const Sketch& sketch) {
  ASSERT_TRUE(sketch.space.Legal(sketch.default_choice)) << sketch.name;
  std::mt19937 random(5);
  for (int points = 0, tries = 0; points < RandomSeeds(2) && tries < 1000; ++tries) {
    Choice choice = sketch.default_choice;
    for (size_t d = 0; points > 0 && d < choice.size(); ++d)
      choice[d] = static_cast<int>(random() % sketch.space.decisions[d].choices.size());
    if (!sketch.space.Legal(choice)) continue;
    ++points;
    const absl::Status status = CheckSketchPoint(canonical, target, sketch, choice, kTolerance);
    EXPECT_TRUE(status.ok()) << PrintTarget(target) << "\n" << status.message();
  }
}

TEST_P(WinogradPointsTest, ComputeTheReference) {
  const Target target = *ParseTarget(absl::StrCat("v1 cpu mcpu=", GetParam(), " l1d=32K l2=512K threads=2"));
  for (const char* text : kWorkloads) {
    SCOPED_TRACE(text);
    const Workload canonical = CanonicalWorkload(text);
    int sketches = 0;
    for (const Sketch& sketch : GenerateSketches(canonical, target)) {
      if (!absl::StartsWith(sketch.name, "winograd")) continue;
      ++sketches;
      CheckPointsOf(canonical, target, sketch);
    }
    EXPECT_EQ(sketches, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Cpus, WinogradPointsTest, testing::Values("haswell", "znver4", "sapphirerapids"),
                         [](const auto& cpu) { return std::string(cpu.param); });

// Tile registers multiply more in a cycle than is saved.
TEST(WinogradTest, NotInsteadOfTileRegisters) {
  const Target target = *ParseTarget("v1 cpu mcpu=sapphirerapids features=+amx-bf16 l1d=48K l2=2M threads=2");
  int winograd = 0;
  for (const char* text : kWorkloads) {
    const bool in_tiles = absl::StrContains(text, "bf16");
    for (const Sketch& sketch : GenerateSketches(CanonicalWorkload(text), target)) {
      const bool is_winograd = absl::StartsWith(sketch.name, "winograd");
      EXPECT_FALSE(is_winograd && in_tiles) << text;
      winograd += is_winograd ? 1 : 0;
    }
  }
  EXPECT_GT(winograd, 0);
}

TEST(WinogradTest, NotWhereTheTargetAsksForDirectSums) {
  for (const char* text : kWorkloads) {
    for (const Sketch& sketch : GenerateSketches(CanonicalWorkload(text), *ParseTarget("znver4 sums=direct")))
      EXPECT_FALSE(absl::StartsWith(sketch.name, "winograd")) << text;
  }
}

}  // namespace
}  // namespace mycc
