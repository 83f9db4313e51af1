// Conversions on this machine's GPU, by its instructions, are the reference's, bit by bit.
#include <gtest/gtest.h>

#include <cstring>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/temporary_folder.h"
#include "codegen/artifact/library.h"
#include "codegen/driver/compile.h"
#include "codegen/runtime/arguments.h"
#include "codegen/runtime/cuda_target.h"
#include "tests/workload/conversion_cases.h"

namespace mycc {
namespace {

TEST(GpuConversionsTest, ConversionsAndArithmeticGiveTheReferencesBits) {
  const Target target = DetectCudaTarget(0).value();
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  LibrarySpec spec{"conversions", target, {}};
  const std::vector<ConversionCase> cases = ConversionCases();
  for (size_t i = 0; i < cases.size(); ++i) {
    const absl::StatusOr<Trace> trace =
        ParseTrace(absl::StrCat("v1\n", ConversionSteps(cases[i].canonical, "block", "thread")));
    ASSERT_TRUE(trace.ok()) << trace.status();
    Workload workload = cases[i].canonical;
    workload.name = absl::StrCat("case", i);
    absl::StatusOr<KernelSpec> kernel = CompileKernel(workload, target, *trace);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    spec.kernels.push_back(*std::move(kernel));
  }
  const std::string path = folder.path() + "/conversions.so";
  const absl::StatusOr<BuildReport> built = BuildSharedObject(spec, path);
  ASSERT_TRUE(built.ok()) << built.status();
  const absl::StatusOr<std::unique_ptr<Library>> library = Library::Open(path);
  ASSERT_TRUE(library.ok()) << library.status();
  for (size_t i = 0; i < cases.size(); ++i) {
    absl::StatusOr<Arguments> arguments = Arguments::Create(library->get(), absl::StrCat("case", i));
    ASSERT_TRUE(arguments.ok()) << arguments.status();
    for (size_t k = 0; k < cases[i].inputs.size(); ++k) {
      const std::vector<uint8_t>& bytes = cases[i].inputs[k].bytes;
      std::memcpy(arguments->tensor(static_cast<int>(k)).data(), bytes.data(), bytes.size());
    }
    const absl::Status called = arguments->Call();
    ASSERT_TRUE(called.ok()) << called;
    std::vector<NDArray> outputs = cases[i].expected;
    for (size_t k = 0; k < outputs.size(); ++k) {
      const HostTensor& tensor = arguments->tensor(static_cast<int>(cases[i].inputs.size() + k));
      std::memcpy(outputs[k].bytes.data(), tensor.data(), outputs[k].bytes.size());
    }
    EXPECT_EQ(DifferenceInBits(outputs, cases[i].expected), "") << "case " << i;
  }
}

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
