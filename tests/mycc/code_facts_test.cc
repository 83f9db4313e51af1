// The facts that are read of generated code, and the share of a peak.
#include "mycc/code_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/driver/compile.h"
#include "codegen/schedule/trace.h"
#include "codegen/workload/parse.h"

namespace mycc {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kAdd[] = "workload add(x: f32[1024]) -> (y: f32[1024]) {\n  y[i] = x[i] + 1.0\n}\n";

Target Plain() { return ParseTarget("v1 cpu mcpu=x86-64 l1d=32K l2=1M threads=2").value(); }

TEST(CodeFactsTest, TheWorstFunctionCountsAndPackersDoNot) {
  const CpuCode code = ReadAssembly(
      "f_pack_body:\n\tsubq\t$4096, %rsp\n"
      "f_body:\n\tsubq\t$24, %rsp\n\tvmovups\t(%rdi), %zmm1\n"
      "f_body_region0:\n\tsubq\t$136, %rsp\n"
      "\tvfmadd231ps\t%zmm0, %zmm31, %zmm7\n\tvmovups\t%zmm7, 64(%rsp)\n.LBB1_1:\n\tvmovaps\t%ymm0, "
      "-32(%rbp)\n"
      "\tvmovups\t%zmm7, 64(%rdi)\n\tvmovups\t64(%rsp), %zmm7\n");
  EXPECT_EQ(code.vector_registers, 3);
  EXPECT_EQ(code.frame_bytes, 136);
  EXPECT_EQ(code.spill_bytes, 96);
}

TEST(CodeFactsTest, OfACompiledKernel) {
  const Workload workload = ParseWorkload(kAdd, "test").value();
  const KernelSpec kernel = CompileKernel(workload, Plain(), Trace()).value();
  const Facts facts = CodeFactsOf(kernel, Plain()).value();
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0].first, "code");
  EXPECT_THAT(facts[0].second, testing::MatchesRegex("[1-9][0-9]* of 16 vector registers, [0-9]+ B of stack "
                                                     "frame, 0 B of vectors spilled"));
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
