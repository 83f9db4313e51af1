// Descent from a default schedule under the analytic model.
#include "tuner/cost/refine.h"

#include "gtest/gtest.h"
#include "tests/tuner/schedules.h"
#include "tuner/cost/analytic.h"

namespace mycc {
namespace {

double SecondsOf(const Workload& workload, const Target& target, const Sketch& sketch, const Choice& choice) {
  const auto schedule = Replay(workload, target, *sketch.instantiate(choice));
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return *EstimateSeconds(schedule->function(), target);
}

TEST(RefineTest, LeavesAPoorDefault) {
  const Target target = Avx2Target();
  const Workload gemm = Canonicalize(*ParseWorkload(GemmText(512, 512, 512), "test"));
  std::vector<Sketch> sketches = GenerateSketches(gemm, target);
  const double good = SecondsOf(gemm, target, sketches[0], sketches[0].default_choice);
  Choice poor(sketches[0].default_choice.size(), 0);  // the smallest of everything
  ASSERT_TRUE(sketches[0].space.Legal(poor));
  const double before = SecondsOf(gemm, target, sketches[0], poor);
  ASSERT_GT(before, 2 * good);
  sketches[0].default_choice = poor;
  const std::vector<Refined> refined = RefineDefaults(gemm, target, sketches);
  ASSERT_FALSE(refined.empty());
  EXPECT_LT(refined[0].seconds, 1.3 * good);
  EXPECT_EQ(refined[0].seconds, SecondsOf(gemm, target, sketches[0], refined[0].point.choice));
  EXPECT_EQ(PointOf(refined[0].trace, sketches), refined[0].point);
  EXPECT_EQ(refined[0].trace, RefineDefaults(gemm, target, sketches)[0].trace);
}

TEST(RefineTest, KeepsADefaultThatIsGoodEnough) {
  const Target target = Avx2Target();
  for (const std::string& text :
       {GemmText(512, 512, 512), GemmText(768, 96, 240),
        std::string("workload r(x: f32[64,1000]) -> (y: f32[64,1000]) { y[i,j] = max(x[i,j], 0.0) }")}) {
    const Workload workload = Canonicalize(*ParseWorkload(text, "test"));
    const std::vector<Sketch> sketches = GenerateSketches(workload, target);
    const std::vector<Refined> refined = RefineDefaults(workload, target, sketches);
    ASSERT_FALSE(refined.empty());
    const double before = SecondsOf(workload, target, sketches[0], sketches[0].default_choice);
    const bool kept = refined[0].point.choice == sketches[0].default_choice;
    EXPECT_TRUE(kept || refined[0].seconds < 0.9 * before);
  }
}

}  // namespace
}  // namespace mycc
