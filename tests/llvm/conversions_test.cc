// Conversions in compiled code, scalar and vector, are the reference's, bit by bit.
#include "codegen/schedule/schedule.h"
#include "gtest/gtest.h"
#include "tests/llvm/compiled.h"
#include "tests/llvm/jit.h"
#include "tests/workload/conversion_cases.h"

namespace mycc {
namespace {

TEST(ConversionsTest, CompiledCodeGivesTheReferencesBits) {
  for (const ConversionCase& c : ConversionCases()) {
    for (const Target& target : RunnableTargets()) {
      for (const char* lanes : {"", "vector"}) {
        const std::string steps = ConversionSteps(c.canonical, "", lanes);
        const absl::StatusOr<LoweredFunction> lowered = LowerTrace(c.canonical, steps, target);
        ASSERT_TRUE(lowered.ok()) << lowered.status();
        const auto kernel = JitKernel::Compile(*lowered, target);
        ASSERT_TRUE(kernel.ok()) << kernel.status();
        EXPECT_EQ(DifferenceInBits((*kernel)->Run(c.inputs), c.expected), "") << PrintTarget(target) << "\n"
                                                                              << PrintLowered(*lowered);
      }
    }
  }
}

}  // namespace
}  // namespace mycc
