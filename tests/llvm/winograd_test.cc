// Convolutions by Winograd as the rules schedule them: compiled for AVX2 and AVX-512, they compute what the
// reference computes.
#include <random>

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
};

TEST(WinogradTest, PointsOfTheRulesSpaces) {
  for (const char* mcpu : {"haswell", "znver4", "sapphirerapids"}) {
    const Target target = *ParseTarget(absl::StrCat("v1 cpu mcpu=", mcpu, " l1d=32K l2=512K threads=2"));
    for (const char* text : kWorkloads) {
      const Workload canonical = CanonicalWorkload(text);
      int sketches = 0;
      for (const Sketch& sketch : GenerateSketches(canonical, target)) {
        if (!absl::StartsWith(sketch.name, "winograd")) continue;
        ++sketches;
        ASSERT_TRUE(sketch.space.Legal(sketch.default_choice)) << sketch.name;
        std::mt19937 random(5);
        for (int points = 0, tries = 0; points < RandomSeeds(5) && tries < 1000; ++tries) {
          Choice choice = sketch.default_choice;
          for (size_t d = 0; points > 0 && d < choice.size(); ++d)
            choice[d] = static_cast<int>(random() % sketch.space.decisions[d].choices.size());
          if (!sketch.space.Legal(choice)) continue;
          ++points;
          const absl::Status status = CheckSketchPoint(canonical, target, sketch, choice, kTolerance);
          EXPECT_TRUE(status.ok()) << mcpu << "\n" << text << "\n" << status.message();
        }
      }
      EXPECT_EQ(sketches, 2) << mcpu << "\n" << text;
    }
  }
}

TEST(WinogradTest, NotWhereTheTargetAsksForDirectSums) {
  for (const char* text : kWorkloads) {
    for (const Sketch& sketch : GenerateSketches(CanonicalWorkload(text), *ParseTarget("znver4 sums=direct")))
      EXPECT_FALSE(absl::StartsWith(sketch.name, "winograd")) << text;
  }
}

}  // namespace
}  // namespace mycc
