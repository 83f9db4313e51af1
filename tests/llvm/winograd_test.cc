// Convolutions by Winograd as the rules schedule them: compiled for AVX2 and AVX-512, they compute what the
// reference computes.
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/ir/verify.h"
#include "codegen/llvm/emit.h"
#include "gtest/gtest.h"
#include "tests/llvm/compiled.h"
#include "tests/schedule/testing.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

constexpr double kTolerance = 5e-5;  // for outputs of a few units

const char* const kWorkloads[] = {
    // Tiles that reach past the edge, a tail of channels and of filters.
    R"(workload c(x: f32[1,9,14,19], w: const f32[35,19,3,3], b: const f32[35]) -> (y: f32[1,9,14,35]) {
  p[n,i,j,c]: f32[1,11,16,19] = select(1 <= i && i < 10 && 1 <= j && j < 15, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[1,9,14,35] = sum[r:3, s:3, c:19](p[n,i+r,j+s,c] * w[k,c,r,s])
  y[n,i,j,k] = max(a[n,i,j,k] + b[k], 0.0)
})",
    // A batch, no padding, weights that are not const, the bare sum.
    R"(workload c(x: f32[3,10,8,16], w: f32[16,16,3,3]) -> (y: f32[3,8,6,16]) {
  y[n,i,j,k] = sum[r:3, s:3, c:16](x[n,i+r,j+s,c] * w[k,c,r,s])
})",
    // Uneven padding; a residual and an activation that reads the sum twice; weights in another order.
    R"(workload c(x: f32[2,8,8,32], w: const f32[3,3,32,16], q: f32[2,8,8,16]) -> (y: f32[2,8,8,16]) {
  p[n,i,j,c]: f32[2,10,10,32] = select(2 <= i && 2 <= j, x[n,i-2,j-2,c], 0.0)
  a[n,i,j,k]: f32[2,8,8,16] = sum[r:3, s:3, c:32](p[n,i+r,j+s,c] * w[r,s,c,k])
  d[n,i,j,k]: f32[2,8,8,16] = a[n,i,j,k] + q[n,i,j,k]
  y[n,i,j,k] = d[n,i,j,k] * tanh(d[n,i,j,k])
})",
};

absl::Status CheckPoint(const Workload& canonical, const Target& target, const Trace& trace) {
  const absl::StatusOr<Schedule> schedule = Replay(canonical, target, trace);
  if (!schedule.ok()) return schedule.status();
  const absl::Status verified = VerifyFunction(schedule->function());
  if (!verified.ok()) return verified;
  if (IsRunnable(target)) return CheckCompiledFunction(canonical, schedule->function(), target, kTolerance);
  const absl::StatusOr<LoweredFunction> lowered = Lower(schedule->function(), target);
  if (!lowered.ok()) return lowered.status();
  return EmitModule({EmitUnit{"k", *lowered}}, target, EmitKind::kObject).status();
}

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
          const absl::StatusOr<Trace> trace = sketch.instantiate(choice);
          ASSERT_TRUE(trace.ok()) << trace.status();
          const absl::Status status = CheckPoint(canonical, target, *trace);
          EXPECT_TRUE(status.ok()) << mcpu << "\n" << text << "\n" << PrintTrace(*trace) << status.message();
        }
      }
      EXPECT_EQ(sketches, 2) << mcpu << "\n" << text;
    }
  }
}

}  // namespace
}  // namespace mycc
