// Parallel kernels with teams of every size: smaller and larger than the work, and inside a parallel region
// of the caller.
#include "absl/strings/str_cat.h"
#include "codegen/workload/reference.h"
#include "gtest/gtest.h"
#include "tests/llvm/compiled.h"
#include "tests/llvm/jit.h"
#include "tests/schedule/testing.h"

// libgomp's, which generated code shares with the program.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int threads);
}

namespace mycc {
namespace {

constexpr char kText[] = R"(workload w(a: f32[13,20], b: const f32[20,9]) -> (c: f32[13,9], s: f32[13]) {
  t[i,k]: f32[13,20] = a[i,k] * 2.0
  c[i,j] = sum[k:20](t[i,k] * b[k,j])
  s[i] = max[j:9](c[i,j])
})";

struct Case {
  const char* name;
  const char* steps;
};
const Case kCases[] = {
    {"rows", "compute_at(t2, t3.a0)\nbind(t3.a0, parallel)\nbind(t4.a0, parallel)\n"},
    {"tiles",
     "split(t3.a0, [4])\nsplit(t3.a1, [4])\nreorder([t3.a0.0, t3.a1.0, t3.r0, t3.a0.1, "
     "t3.a1.1])\nbind(t3.a0.0, "
     "parallel)\n"
     "bind(t3.a1.0, parallel)\nbind(t3.a1.1, vector)\n"},
    // The ninth column is one lane.
    {"sums_that_threads_share",
     "split(t3.a0, [2, 2])\nreorder([t3.a0.0, t3.a0.1, t3.r0, t3.a0.2, t3.a1])\ncache_write(t3, t3.a0.0)\n"
     "bind(t3.a0.1, parallel)\ntensorize(t3.r0, fma.f32)\n"},
    {"inside_a_serial_loop", "split(t3.a0, [4])\nbind(t3.a0.1, parallel)\nbind(t2.a1, parallel)\n"},
};

class ParallelTest : public testing::TestWithParam<Case> {};

TEST_P(ParallelTest, AnyTeamSize) {
  const Workload canonical = CanonicalWorkload(kText);
  const auto lowered = LowerTrace(canonical, GetParam().steps, AvxTarget());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_TRUE(lowered->parallel);
  const auto kernel = JitKernel::Compile(*lowered, AvxTarget());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const std::vector<NDArray> inputs = RandomInputs(canonical, 5);
  const int threads_before = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::vector<NDArray> alone = (*kernel)->Run(inputs);
  const auto expected = RunReference(canonical, inputs);
  ASSERT_TRUE(expected.ok());
  for (size_t o = 0; o < alone.size(); ++o) {
    for (int64_t i = 0; i < alone[o].num_elements(); ++i)
      EXPECT_NEAR(alone[o].Get(i).f, (*expected)[o].Get(i).f, 1e-4);
  }
  for (const int threads : {2, 3, 5, 8}) {
    omp_set_num_threads(threads);
    const std::vector<NDArray> together = (*kernel)->Run(inputs);
    for (size_t o = 0; o < alone.size(); ++o)
      EXPECT_EQ(together[o].bytes, alone[o].bytes) << threads << " threads, output " << o;
  }
  omp_set_num_threads(threads_before);
}

INSTANTIATE_TEST_SUITE_P(All, ParallelTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mycc
