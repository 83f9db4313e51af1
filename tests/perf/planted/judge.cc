#include "tests/perf/planted/judge.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/ir/verify.h"
#include "codegen/workload/arg_reduction.h"
#include "codegen/workload/compare.h"
#include "tests/passes/lowered_function.h"

namespace mycc::planted {
namespace {

constexpr uint64_t kSeeds = 2;  // orders of threads, iterations and roles

}  // namespace

Function WholeOf(const LoweredFunction& code) { return WholeFunction(code); }

absl::StatusOr<std::vector<NDArray>> RunCode(const Kernel& kernel, const Function& whole, uint64_t seed) {
  return RunFunction(whole, kernel.inputs, seed);
}

std::string WrongResult(const Kernel& kernel, const std::vector<NDArray>& outputs) {
  std::vector<const uint8_t*> inputs;
  for (const NDArray& input : kernel.inputs) inputs.push_back(input.bytes.data());
  const Tolerance tolerance = ToleranceOf(kernel.workload);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const NDArray& want = kernel.expected[i];
    const Expected expected{want.dtype, want.bytes.data(), {}, want.num_elements()};
    ArgReduction judge(kernel.workload, kernel.workload.outputs[i], inputs);
    const Comparison comparison = Compare(expected, outputs[i].bytes.data(), tolerance, judge.excuse());
    if (!comparison.passed) return absl::StrCat("output ", i, ": ", comparison.first_mismatch);
  }
  return "";
}

Verdict Judge(const Kernel& kernel, const LoweredFunction& code) {
  const Function whole = WholeOf(code);
  const absl::Status verified = VerifyFunction(whole);
  if (!verified.ok()) return {"verifier", std::string(verified.message())};
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto outputs = RunCode(kernel, whole, seed);
    if (!outputs.ok()) return {"interpreter", std::string(outputs.status().message())};
    const std::string wrong = WrongResult(kernel, *outputs);
    if (!wrong.empty()) return {"results", wrong};
  }
  return {};
}

}  // namespace mycc::planted
