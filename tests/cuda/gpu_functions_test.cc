// Every operation on this machine's GPU is as exact as the language says. The largest errors are printed, for
// the table "Accuracy" of docs/language.md.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/temporary_folder.h"
#include "codegen/artifact/library.h"
#include "codegen/driver/compile.h"
#include "codegen/runtime/arguments.h"
#include "codegen/runtime/cuda_target.h"
#include "tests/workload/function_cases.h"

namespace mycc {
namespace {

constexpr int kSweepsOfWideTypes = 40;

std::vector<FunctionCase> CasesOf(DType dtype) {
  std::vector<FunctionCase> cases;
  for (const FunctionCase& function : FunctionCases()) {
    if (function.dtype == dtype) cases.push_back(function);
  }
  return cases;
}

NDArray Computed(Library* library, const FunctionCase& function, const std::vector<NDArray>& inputs) {
  Arguments arguments = Arguments::Create(library, function.name()).value();
  for (size_t k = 0; k < inputs.size(); ++k)
    std::memcpy(arguments.tensor(static_cast<int>(k)).data(), inputs[k].bytes.data(), inputs[k].bytes.size());
  const absl::Status called = arguments.Call();
  EXPECT_TRUE(called.ok()) << called;
  NDArray result = NDArray::Zeros(function.dtype, {kFunctionElements});
  const HostTensor& output = arguments.tensor(static_cast<int>(inputs.size()));
  std::memcpy(result.bytes.data(), output.data(), result.bytes.size());
  return result;
}

class GpuFunctionsTest : public testing::TestWithParam<DType> {};

TEST_P(GpuFunctionsTest, AreAsExactAsTheLanguageSays) {
  const Target target = DetectCudaTarget(0).value();
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::vector<FunctionCase> cases = CasesOf(GetParam());
  LibrarySpec spec{"functions", target, {}};
  for (const FunctionCase& function : cases) {
    const std::string output = function.workload().outputs[0]->name;
    const absl::StatusOr<Trace> trace =
        ParseTrace(absl::StrCat("v1\nsplit(", output, ".a0, [256])\nbind(", output, ".a0.0, block)\nbind(",
                                output, ".a0.1, thread)\n"));
    ASSERT_TRUE(trace.ok()) << trace.status();
    absl::StatusOr<KernelSpec> kernel = CompileKernel(function.workload(), target, *trace);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    spec.kernels.push_back(*std::move(kernel));
  }
  const std::string path = folder.path() + "/functions.so";
  const absl::StatusOr<BuildReport> built = BuildSharedObject(spec, path);
  ASSERT_TRUE(built.ok()) << built.status();
  const absl::StatusOr<std::unique_ptr<Library>> library = Library::Open(path);
  ASSERT_TRUE(library.ok()) << library.status();
  for (const FunctionCase& function : cases) {
    FunctionError worst;
    const int sweeps = function.Sweeps(kSweepsOfWideTypes);
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      FunctionJudge judge(function, function.Inputs(sweep, sweeps));
      const FunctionError error = judge.Judge(Computed(library->get(), function, judge.inputs()));
      if (error.ulp > worst.ulp) worst = error;
    }
    std::printf("%s: %.4g ulp\n", function.name().c_str(), worst.ulp);
    EXPECT_LE(worst.ulp, AccuracyOf(function.op, function.dtype).cuda) << worst.at;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuFunctionsTest,
                         testing::Values(DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3,
                                         DType::kF8E5M2),
                         [](const auto& info) { return DTypeName(info.param); });

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (const auto device = mycc::DetectCudaTarget(0); !device.ok()) {
    std::cout << "skipped: " << device.status().message() << "\n";
    return 77;
  }
  return RUN_ALL_TESTS();
}
