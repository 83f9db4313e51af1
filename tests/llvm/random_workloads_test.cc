// Random workloads over every type and operation: the naive nest and the reference kernel's lanes, scalar and
// vector, against the reference.
#include <cmath>

#include "codegen/llvm/reference_kernel.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/print.h"
#include "gtest/gtest.h"
#include "tests/llvm/compiled.h"
#include "tests/workload/random_workload.h"

namespace mycc {
namespace {

constexpr int kSeeds = 150;

TEST(RandomWorkloadsTest, Naive) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Workload canonical = Canonicalize(RandomWorkload(seed));
    for (const Target& target : RunnableTargets()) {
      const absl::Status status = CheckCompiled(canonical, "", target, 1e-2);
      EXPECT_TRUE(status.ok()) << "seed " << seed << "\n" << PrintWorkload(canonical) << status.message();
    }
  }
}

TEST(RandomWorkloadsTest, ReferenceKernel) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Workload canonical = Canonicalize(RandomWorkload(seed));
    for (const Target& target : RunnableTargets()) {
      const absl::Status status =
          CheckCompiledFunction(canonical, ReferenceFunction(canonical), target, 1e-2);
      EXPECT_TRUE(status.ok()) << "seed " << seed << "\n" << PrintWorkload(canonical) << status.message();
    }
  }
}

}  // namespace
}  // namespace mycc
