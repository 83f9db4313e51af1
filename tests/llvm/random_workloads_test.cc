// Random workloads over every type and operation: the naive nest and the reference kernel's lanes, scalar and
// vector, against the reference.
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/driver/reference_kernel.h"
#include "codegen/ir/verify.h"
#include "codegen/llvm/emit.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/print.h"
#include "gtest/gtest.h"
#include "tests/llvm/compiled.h"
#include "tests/llvm/sketch_points.h"
#include "tests/schedule/testing.h"
#include "tests/workload/random_workload.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

// bf16 sums, whose order schedules change.
constexpr double kTolerance = 1e-2;

Target TargetOf(const char* mcpu) {
  return *ParseTarget(absl::StrCat("v1 cpu mcpu=", mcpu, " l1d=32K l2=512K threads=2"));
}

// Every sketch's own guess, and one random point.
TEST(RandomWorkloadsTest, SchedulesOfTheRules) {
  for (const char* mcpu : {"haswell", "znver4", "sapphirerapids"}) {
    const Target target = TargetOf(mcpu);
    for (int seed = 0; seed < RandomSeeds(60); ++seed) {
      const Workload canonical = Canonicalize(RandomWorkload(seed));
      std::mt19937 random(static_cast<uint32_t>(seed));
      for (const Sketch& sketch : GenerateSketches(canonical, target)) {
        EXPECT_TRUE(sketch.space.Legal(sketch.default_choice)) << "seed " << seed << ", " << sketch.name;
        Choice other = sketch.default_choice;
        for (size_t d = 0; d < other.size(); ++d) {
          other[d] = static_cast<int>(random() % sketch.space.decisions[d].choices.size());
        }
        for (const Choice& choice :
             {sketch.default_choice, sketch.space.Legal(other) ? other : sketch.default_choice}) {
          const absl::Status status = CheckSketchPoint(canonical, target, sketch, choice, kTolerance);
          EXPECT_TRUE(status.ok()) << mcpu << " seed " << seed << ", " << sketch.name << "\n"
                                   << PrintWorkload(canonical) << status.message();
        }
      }
    }
  }
}

TEST(RandomWorkloadsTest, Naive) {
  for (int seed = 0; seed < RandomSeeds(150); ++seed) {
    const Workload canonical = Canonicalize(RandomWorkload(seed));
    for (const Target& target : RunnableTargets()) {
      const absl::Status status = CheckCompiled(canonical, "", target, kTolerance);
      EXPECT_TRUE(status.ok()) << "seed " << seed << "\n" << PrintWorkload(canonical) << status.message();
    }
  }
}

TEST(RandomWorkloadsTest, ReferenceKernel) {
  for (int seed = 0; seed < RandomSeeds(150); ++seed) {
    const Workload canonical = Canonicalize(RandomWorkload(seed));
    for (const Target& target : RunnableTargets()) {
      const absl::Status status =
          CheckCompiledFunction(canonical, ReferenceFunction(canonical), target, kTolerance);
      EXPECT_TRUE(status.ok()) << "seed " << seed << "\n" << PrintWorkload(canonical) << status.message();
    }
  }
}

}  // namespace
}  // namespace mycc
