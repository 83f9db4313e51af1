// Conversions in emitted code, on the host, and in lowered code are the reference's, bit by bit; and the
// code compiles with the instructions of each architecture.
#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/ir/interpreter.h"
#include "gtest/gtest.h"
#include "tests/cuda/emitted.h"
#include "tests/cuda/host_run.h"
#include "tests/passes/lowered_function.h"
#include "tests/workload/conversion_cases.h"

namespace mycc {
namespace {

TEST(ConversionsTest, EmittedCodeGivesTheReferencesBits) {
  const std::vector<ConversionCase> cases = ConversionCases();
  std::vector<HostUnit> units;
  for (const ConversionCase& c : cases) {
    HostUnit unit;
    absl::StatusOr<LoweredFunction> lowered =
        LowerForGpu(c.canonical, ConversionSteps(c.canonical, "block", "thread"), Sm90a());
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const auto interpreted = RunFunction(WholeFunction(*lowered), c.inputs, 3);
    ASSERT_TRUE(interpreted.ok()) << interpreted.status();
    EXPECT_EQ(DifferenceInBits(*interpreted, c.expected), "") << PrintLowered(*lowered);
    unit.lowered = *std::move(lowered);
    absl::StatusOr<CudaProgram> program = EmitCuda(unit.lowered, Sm90a(), "k" + std::to_string(units.size()));
    ASSERT_TRUE(program.ok()) << program.status();
    unit.program = *std::move(program);
    units.push_back(std::move(unit));
  }
  for (const Target& target : {Sm80(), Sm89(), Sm90a()}) {
    for (const ConversionCase& c : cases) {
      const absl::StatusOr<LoweredFunction> lowered =
          LowerForGpu(c.canonical, ConversionSteps(c.canonical, "block", "thread"), target);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      const absl::StatusOr<CudaProgram> program = EmitCuda(*lowered, target, "k");
      ASSERT_TRUE(program.ok()) << program.status();
      const absl::StatusOr<CudaImage> image = CompileCuda(program->source, target);
      EXPECT_TRUE(image.ok()) << image.status();
    }
  }
  const auto library = HostLibrary::Compile(units);
  ASSERT_TRUE(library.ok()) << library.status();
  for (size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(DifferenceInBits((*library)->Run(i, cases[i].inputs), cases[i].expected), "")
        << units[i].program.source;
}

}  // namespace
}  // namespace mycc
