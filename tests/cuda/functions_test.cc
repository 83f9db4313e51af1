// Every operation in emitted code, run on the host with the C library's functions: it rounds, saturates and
// keeps special values as the language says. gpu_functions_test.cc runs it with CUDA's.
#include "absl/strings/str_cat.h"
#include "codegen/cuda/emit.h"
#include "gtest/gtest.h"
#include "tests/cuda/emitted.h"
#include "tests/cuda/host_run.h"
#include "tests/workload/function_cases.h"

namespace mycc {
namespace {

TEST(FunctionsTest, EmittedCodeIsAsExactAsTheLanguageSays) {
  const std::vector<FunctionCase> cases = FunctionCases();
  std::vector<HostUnit> units;
  for (const FunctionCase& function : cases) {
    const std::string output = function.workload().outputs[0]->name;
    HostUnit unit;
    absl::StatusOr<LoweredFunction> lowered =
        LowerForGpu(function.workload(),
                    absl::StrCat("split(", output, ".a0, [64])\nbind(", output, ".a0.0, block)\nbind(",
                                 output, ".a0.1, thread)\n"),
                    Sm90a());
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    unit.lowered = *std::move(lowered);
    absl::StatusOr<CudaProgram> program = EmitCuda(unit.lowered, Sm90a(), absl::StrCat("k", units.size()));
    ASSERT_TRUE(program.ok()) << program.status();
    unit.program = *std::move(program);
    units.push_back(std::move(unit));
  }
  const auto library = HostLibrary::Compile(units);
  ASSERT_TRUE(library.ok()) << library.status();
  for (size_t i = 0; i < cases.size(); ++i) {
    FunctionJudge judge(cases[i], cases[i].Inputs(0, 1));
    const FunctionError error = judge.Judge((*library)->Run(i, judge.inputs())[0]);
    EXPECT_LE(error.ulp, AccuracyOf(cases[i].op, cases[i].dtype).cuda) << cases[i].name() << ": " << error.at;
  }
}

}  // namespace
}  // namespace mycc
