// Stores that bypass the caches, and prefetches: which instructions they become, and that results are the
// same wherever tensors begin.
#include <algorithm>

#include "base/status.h"
#include "gtest/gtest.h"
#include "tests/llvm/compiled.h"
#include "tests/llvm/jit.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

struct Case {
  const char* name;
  const char* text;
  const char* steps;
  int past_caches;  // instructions under AVX-512 that store past the caches
  int fetches;
};

constexpr char kDouble[] = "workload w(x: f32[40,64]) -> (y: f32[40,64]) { y[i,j] = x[i,j] * 2.0 }";

const Case kCases[] = {
    {"flat", kDouble,
     "fuse([t1.a0, t1.a1])\nsplit(t1.a0+a1, [2, 16])\nnontemporal(t1.a0+a1.0)\nbind(t1.a0+a1.2, vector)\n"
     "bind(t1.a0+a1.1, unroll)\nbind(t1.a0+a1.0, parallel)\n",
     2, 0},
    {"serial", kDouble, "nontemporal(t1.a0)\nsplit(t1.a1, [16])\nbind(t1.a1.1, vector)\n", 1, 0},
    {"inside_parallel", kDouble,
     "split(t1.a1, [16])\nnontemporal(t1.a1.0)\nbind(t1.a1.1, vector)\nbind(t1.a0, parallel)\n", 1, 0},
    {"odd_rows", "workload w(x: f32[40,65]) -> (y: f32[40,65]) { y[i,j] = x[i,j] * 2.0 }",
     "nontemporal(t1.a0)\nsplit(t1.a1, [16])\nbind(t1.a1.1, vector)\n", 0, 0},
    {"half_a_line", "workload w(x: f32[40,24]) -> (y: f32[40,24]) { y[i,j] = x[i,j] * 2.0 }",
     "nontemporal(t1.a0)\nsplit(t1.a1, [8])\nbind(t1.a1.1, vector)\n", 1, 0},
    {"turned", "workload w(x: f32[32,48]) -> (y: f32[48,32]) { y[i,j] = x[j,i] }",
     "split(t1.a0, [16])\nsplit(t1.a1, [16])\nreorder([t1.a0.0, t1.a1.0, t1.a0.1, "
     "t1.a1.1])\nnontemporal(t1.a0.0)\n"
     "bind(t1.a0.1, unroll)\nbind(t1.a1.1, vector)\n",
     16, 0},
    {"an_output_read_again", R"(workload w(x: f32[40,64]) -> (y: f32[40,64], z: f32[40,64]) {
  y[i,j] = x[i,j] * 2.0
  z[i,j] = y[i,j] + 1.0 })",
     "merge(t1.a0, t2.a0)\nmerge(t1.a1, t2.a1)\nsplit(t1.a1, [16])\nnontemporal(t1.a0)\nbind(t1.a1.1, "
     "vector)\n",
     1, 0},
    {"rows_ahead", R"(workload w(x: f32[40,64], g: f32[64]) -> (y: f32[40,64]) {
  s[i]: f32[40] = sum[j:64](x[i,j])
  y[i,j] = (x[i,j] - s[i]) * (x[i,j] + s[i]) * g[j] })",
     "compute_at(t2, t3.a0)\nsplit(t3.a1, [2, 16])\nfetch_next(t3.a1.0)\nbind(t3.a1.2, vector)\n"
     "bind(t3.a1.1, unroll)\nbind(t3.a0, parallel)\n",
     0, 2},
    // Four rows of a and two vectors of b, in two steps of an unrolled loop.
    {"products_ahead", R"(workload w(a: f32[4,64], b: f32[64,32]) -> (c: f32[4,32]) {
  c[i,j] = sum[k:64](a[i,k] * b[k,j]) })",
     "split(t2.a0, [4])\nreorder([t2.a0.0, t2.r0, t2.a0.1, t2.a1])\ncache_write(t2, t2.a0.0)\n"
     "tensorize(t2.r0, muladd.f32)\nprefetch(t2.r0, 16, 4, 0)\n",
     0, 12},
};

int Count(const std::string& assembly, const std::string& instruction) {
  int count = 0;
  for (size_t at = assembly.find(instruction); at != std::string::npos;
       at = assembly.find(instruction, at + 1))
    ++count;
  return count;
}

class StreamsTest : public testing::TestWithParam<Case> {};

TEST_P(StreamsTest, InstructionsAreThoseOfTheTarget) {
  const auto lowered = LowerTrace(CanonicalWorkload(GetParam().text), GetParam().steps, Avx512Target());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const auto assembly = EmitModule({EmitUnit{"k", *lowered}}, Avx512Target(), EmitKind::kAssembly);
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  EXPECT_EQ(Count(*assembly, "vmovnt"), GetParam().past_caches) << *assembly;
  EXPECT_GE(Count(*assembly, "sfence"), std::min(GetParam().past_caches, 1)) << *assembly;
  EXPECT_EQ(Count(*assembly, "prefetcht0"), GetParam().fetches) << *assembly;
}

TEST_P(StreamsTest, ComputesTheReferenceWhereverTensorsBegin) {
  const Workload canonical = CanonicalWorkload(GetParam().text);
  const std::vector<NDArray> inputs = RandomInputs(canonical, 3);
  const auto expected = RunReference(canonical, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const Target& target : RunnableTargets()) {
    const auto lowered = LowerTrace(canonical, GetParam().steps, target);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const auto kernel = JitKernel::Compile(*lowered, target);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    for (const Placement placement : {Placement::kOdd, Placement::kLine, Placement::kLastByte}) {
      const absl::Status close =
          CheckClose((*kernel)->Run(inputs, placement), *expected, 1e-5, "compiled code");
      EXPECT_TRUE(close.ok()) << target.mcpu << ": " << close;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, StreamsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mycc
