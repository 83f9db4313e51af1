// The facts that are read of generated code, and the share of a peak.
#include "mycc/code_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "codegen/driver/compile.h"
#include "codegen/schedule/trace.h"
#include "codegen/workload/parse.h"
#include "mycc/finder.h"
#include "mycc/launch_counts.h"

namespace mycc {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kAdd[] = "workload add(x: f32[4096]) -> (y: f32[4096]) {\n  y[i] = x[i] + 1.0\n}\n";

Target Plain() { return ParseTarget("v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=2").value(); }

KernelSpec ByDefault(const Workload& workload, const Target& target) {
  return ScheduleFinder(nullptr, target).Find(workload)->kernel;
}

TEST(CodeFactsTest, TheWorstFunctionCounts) {
  const CpuCode code = ReadAssembly(
      "f_body:\n\tsubq\t$24, %rsp\n\tvmovups\t(%rdi), %zmm1\n"
      "f_body_region0:\n\taddq\t$-128, %rsp\n"
      "\tvfmadd231ps\t%zmm0, %zmm31, %zmm7\n\tvmovups\t%zmm7, 64(%rsp)\n.LBB1_1:\n"
      "\tvmovups\t%zmm7, 64(%rdi)\n\tvmovups\t64(%rsp), %zmm7\n\tsubq\t$-128, %rsp\n"
      "g_body:\n\tvmovaps\t%xmm1, (%rsp)\n");
  EXPECT_EQ(code.vector_registers, 3);
  EXPECT_EQ(code.tile_registers, 0);
  EXPECT_EQ(code.frame_bytes, 128);
  EXPECT_EQ(code.spill_bytes, 64);
}

TEST(CodeFactsTest, ASlotCountsOnceAndAScalarCountsItsBytes) {
  const CpuCode code = ReadAssembly(
      "f_body:\n\tvmovups\t%ymm0, 64(%rsp)\n\tvmovups\t%ymm1, 64(%rsp)\n\tvmovss\t%xmm0, 8(%rsp)\n"
      "\tvmovsd\t%xmm2, 16(%rsp)\n\tvmovaps\t%xmm3, 32(%rsp)\n\tmovq\t%rax, 24(%rsp)\n"
      "\tvmovups\t%ymm1, (%rsp,%rax,4)\n");
  EXPECT_EQ(code.spill_bytes, 32 + 4 + 8 + 16);
}

TEST(CodeFactsTest, RbpIsTheStackWhereItIsTheFramePointer) {
  const std::string store = "\tvmovups\t%zmm7, -64(%rbp)\n";
  EXPECT_EQ(ReadAssembly("f:\n\tmovq\t%rdi, %rbp\n" + store).spill_bytes, 0);
  EXPECT_EQ(ReadAssembly("f:\n\tmovq\t%rsp, %rbp\n" + store + "g:\n" + store + store).spill_bytes, 64);
  EXPECT_EQ(ReadAssembly("g:\n" + store).spill_bytes, 0);
}

TEST(CodeFactsTest, TilesAreCountedWhereThereAreAny) {
  const Target amx = ParseTarget("sapphirerapids").value();
  const Workload workload = ParseWorkload(
                                "workload f(x: bf16[64,64], w: const bf16[64,64]) -> (y: f32[64,64]) {\n"
                                "  y[i,j] = sum[k:64](f32(x[i,k]) * f32(w[k,j]))\n}",
                                "test")
                                .value();
  const Facts facts = CodeFactsOf(ByDefault(workload, amx), amx);
  EXPECT_THAT(facts[0].second, testing::ContainsRegex("of 32 vector registers, [1-8] of 8 tile registers, "));
  EXPECT_EQ(ReadAssembly("f:\n\ttdpbf16ps\t%tmm5, %tmm4, %tmm0\n").tile_registers, 3);
}

// A name that ends like that of a packer.
TEST(CodeFactsTest, PackersDoNotCountAndNamesDoNotMatter) {
  const std::string text =
      "(x: f32[64,64], w: const f32[64,64]) -> (y: f32[64,64]) {\n"
      "  y[i,j] = sum[k:64](x[i,k] * w[k,j])\n}";
  std::vector<Facts> facts;
  for (const char* name : {"dense", "dense_pack", "dense_pack_body"}) {
    const Workload workload = ParseWorkload(absl::StrCat("workload ", name, text), "test").value();
    facts.push_back(CodeFactsOf(ByDefault(workload, Plain()), Plain()));
  }
  EXPECT_THAT(facts[0][0].second, testing::MatchesRegex("[1-9].*"));
  EXPECT_THAT(facts, testing::Each(facts[0]));
}

TEST(CodeFactsTest, CodeThatCannotBeMadeIsAFactToo) {
  const KernelSpec kernel = CompileKernel(ParseWorkload(kAdd, "test").value(), Plain(), Trace()).value();
  Target unknown = Plain();
  unknown.mcpu = "zx81";
  const Facts facts = CodeFactsOf(kernel, unknown);
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0].first, "code");
  EXPECT_THAT(facts[0].second, testing::AllOf(testing::StartsWith("not known: "), HasSubstr("zx81")));
}

TEST(CodeFactsTest, OfACompiledKernel) {
  const Workload workload = ParseWorkload(kAdd, "test").value();
  const KernelSpec kernel = CompileKernel(workload, Plain(), Trace()).value();
  const Facts facts = CodeFactsOf(kernel, Plain());
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0].first, "code");
  EXPECT_THAT(facts[0].second, testing::MatchesRegex("[1-9][0-9]* of 16 vector registers, [0-9]+ B of stack "
                                                     "frame, 0 B of vectors spilled"));
}

// Lowering gives an unbound nest its threads, and the counts are of these.
TEST(CodeFactsTest, UnboundNestsAreCountedAsTheyAreLowered) {
  const Target h200 = ParseTarget("h200").value();
  const auto counts = LaunchCountsOf(ParseWorkload(kAdd, "test").value(), h200, Trace()).value();
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_THAT(counts[0].second, testing::Not(HasSubstr(" of 1 blocks")));
}

// Columns are summed in two launches: what each moves, and what limits it.
TEST(CodeFactsTest, LaunchesOfAGpuAreCounted) {
  const Target h200 = ParseTarget("h200").value();
  const auto counts_of = [&](const char* text) {
    const Workload workload = ParseWorkload(text, "test").value();
    const KernelSpec kernel = ByDefault(workload, h200);
    return LaunchCountsOf(workload, h200, kernel.trace).value();
  };
  const auto sums =
      counts_of("workload f(x: f16[8192,8192]) -> (y: f32[8192]) {\n  y[j] = sum[i:8192](f32(x[i,j]))\n}");
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].first, "counts 1");
  EXPECT_THAT(sums[0].second,
              testing::ContainsRegex("^[0-9.]+ us: DRAM 138.5 MB in [0-9.]+ us, L2 .*; limited by DRAM$"));
  EXPECT_THAT(sums[1].second, HasSubstr(" waves of 256 blocks"));
  const auto product = counts_of(
      "workload g(a: bf16[4096,4096], b: bf16[4096,4096]) -> (c: f32[4096,4096]) {\n"
      "  c[i,j] = sum[k:4096](f32(a[i,k]) * f32(b[j,k]))\n}");
  ASSERT_EQ(product.size(), 1u);
  EXPECT_THAT(product[0].second,
              testing::ContainsRegex(", products [0-9.]+ us, operands to shared memory .* waves of [0-9]+ "
                                     "tiles; limited by products$"));
}

TEST(CodeFactsTest, TheShareNeedsATime) {
  const Workload workload = ParseWorkload(kAdd, "test").value();
  EXPECT_THAT(ShareOfPeak(workload, Plain(), std::nullopt), HasSubstr("not known"));
  const std::string slow = ShareOfPeak(workload, Plain(), 1e-3), fast = ShareOfPeak(workload, Plain(), 1e-9);
  EXPECT_THAT(slow, HasSubstr("0 % of f32 arithmetic (0.000 of "));
  EXPECT_THAT(slow, HasSubstr("of memory bandwidth"));
  EXPECT_THAT(fast, HasSubstr("from caches, beyond the memory's"));
}

TEST(CodeFactsTest, ArithmeticOfNarrowTypesHasNoPeakHere) {
  const Workload workload =
      ParseWorkload("workload f(x: bf16[64]) -> (y: bf16[64]) { y[i] = x[i] }", "test").value();
  EXPECT_THAT(ShareOfPeak(workload, Plain(), 1e-6), Not(HasSubstr("arithmetic")));
  EXPECT_THAT(ShareOfPeak(workload, ParseTarget("h200").value(), 1e-6), HasSubstr(" GB/s"));
}

}  // namespace
}  // namespace mycc
