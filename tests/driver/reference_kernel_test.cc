// The kernels that candidates are checked against, on a GPU: they exist for every workload, and mean the same
// as those of a CPU.
#include "codegen/driver/reference_kernel.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "codegen/artifact/library.h"
#include "codegen/driver/compile.h"
#include "codegen/ir/interpreter.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/reference.h"
#include "tests/passes/lowered_function.h"

namespace mycc {
namespace {

std::vector<Workload> WorkloadsOf(const std::string& file) {
  const char* source = std::getenv("MYCC_SOURCE_DIR");
  return ParseWorkloads(ReadFile(std::string(source) + "/" + file).value(), file).value();
}

TEST(CudaReference, EveryWorkloadOfTheSuiteHasOne) {
  const Target target = ParseTarget("h200").value();
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  for (const Workload& workload : WorkloadsOf("tests/perf/suite_gpu.te")) {
    const absl::StatusOr<KernelSpec> kernel = CompileReference(workload, target);
    ASSERT_TRUE(kernel.ok()) << workload.name << ": " << kernel.status();
    const absl::StatusOr<BuildReport> report =
        BuildSharedObject({"reference", target, {*kernel}}, folder.path() + "/reference.so");
    ASSERT_TRUE(report.ok()) << workload.name << ": " << report.status();
    EXPECT_EQ(report->spill_bytes, 0) << workload.name;
  }
}

constexpr char kWorkloads[] = R"(
workload gemm(a: bf16[5,7], b: bf16[9,7]) -> (c: bf16[5,9]) {
  s[i,j]: f32[5,9] = sum[k:7](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = bf16(s[i,j])
}
workload softmax(x: f32[3,17]) -> (y: f32[3,17]) {
  m[i]: f32[3] = max[j:17](x[i,j])
  e[i,j]: f32[3,17] = exp(x[i,j] - m[i])
  s[i]: f32[3] = sum[j:17](e[i,j])
  y[i,j] = e[i,j] / s[i]
}
workload best(x: f32[300,5]) -> (i: i32[300]) { i[r] = argmax[c:5](x[r,c]) }
workload total(x: f32[2,33]) -> (s: f32[]) { s[] = sum[i:2, j:33](x[i,j]) }
workload scale(x: f32[4,8], w: const f32[8]) -> (y: f32[4,8]) { y[i,j] = x[i,j] * w[j] }
)";

TEST(CudaReference, MeansTheSameAsTheCpus) {
  const Target target = ParseTarget("a100").value();
  const std::vector<Workload> workloads = ParseWorkloads(kWorkloads, "test").value();
  for (const Workload& workload : workloads) {
    const Workload canonical = Canonicalize(workload);
    const absl::StatusOr<KernelSpec> kernel = CompileReference(workload, target);
    ASSERT_TRUE(kernel.ok()) << workload.name << ": " << kernel.status();
    const std::vector<NDArray> inputs = RandomInputs(canonical, 7);
    const auto got = RunFunction(WholeFunction(kernel->lowered), inputs);
    const auto expected = RunFunction(ReferenceFunction(canonical), inputs);
    ASSERT_TRUE(got.ok()) << workload.name << ": " << got.status();
    ASSERT_TRUE(expected.ok()) << workload.name << ": " << expected.status();
    for (size_t i = 0; i < got->size(); ++i)
      EXPECT_EQ((*got)[i].bytes, (*expected)[i].bytes) << workload.name;
  }
}

// A record that was made under other names still stands for the code.
TEST(CudaCodeDigest, IsOfTheCodeWhateverItsNames) {
  const Target target = ParseTarget("h200").value();
  const auto digest = [&](const std::string& text) {
    return CodeDigestOf(CompileReference(ParseWorkload(text, "test").value(), target).value(), target)
        .value();
  };
  const std::string scaled = digest("workload scale(x: f32[64]) -> (y: f32[64]) { y[i] = x[i] * 2.0 }");
  EXPECT_EQ(scaled, digest("workload double(a: f32[64]) -> (b: f32[64]) { b[k] = a[k] * 2.0 }"));
  EXPECT_NE(scaled, digest("workload scale(x: f32[64]) -> (y: f32[64]) { y[i] = x[i] * 3.0 }"));
}

}  // namespace
}  // namespace mycc
