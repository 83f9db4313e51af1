#include "worker/runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/workload/arg_reduction.h"
#include "codegen/workload/compare.h"
#include "codegen/workload/parse.h"
#include "worker/baseline.h"
#include "worker/kernel_call.h"
#include "worker/test_case.h"
#include "worker/timer.h"
#include "worker/undisturbed.h"

namespace mycc {
namespace {

constexpr int kTimingAttempts = 4;
// A first call this much slower than the best kernel is not worth a second one. First calls are slow for
// other reasons too, hence the margin.
constexpr double kWorthless = 20, kWorthlessSeconds = 0.02;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

v1::RunnerResponse Failure(v1::MeasureStatus status, const std::string& error) {
  v1::RunnerResponse response;
  response.set_status(status);
  response.set_error(error);
  return response;
}

v1::RunnerResponse Prepare(const v1::PrepareRequest& request) {
  const absl::StatusOr<Workload> workload = ParseWorkload(request.workload(), "workload");
  const absl::Status made =
      workload.ok() ? TestCase::Make(*workload, request.seed(), request.library(), request.directory())
                    : workload.status();
  if (!made.ok()) return Failure(v1::MEASURE_STATUS_RUN_ERROR, std::string(made.message()));
  v1::RunnerResponse response;
  response.set_status(v1::MEASURE_STATUS_OK);
  return response;
}

// Compares all outputs. The error names the first output that is wrong.
absl::Status Verify(const Workload& workload, const TestCase& test, KernelCall& call,
                    v1::Verification* verification) {
  verification->add_seeds(test.seed());
  const Tolerance tolerance = ToleranceOf(workload);
  absl::Status status = call.CheckUntouched(test.inputs());
  for (size_t i = 0; i < workload.outputs.size(); ++i) {
    const Buffer& tensor = workload.outputs[i];
    ArgReduction judge(workload, tensor, test.inputs());
    const Comparison comparison =
        Compare(test.expected()[i], call.output(static_cast<int>(i)), tolerance, judge.excuse());
    verification->set_max_abs_error(std::max(verification->max_abs_error(), comparison.max_abs_error));
    verification->set_max_rel_error(std::max(verification->max_rel_error(), comparison.max_rel_error));
    verification->set_outputs_checked(verification->outputs_checked() + 1);
    verification->set_elements_checked(verification->elements_checked() +
                                       static_cast<uint64_t>(comparison.checked));
    if (!comparison.passed && status.ok()) {
      status = absl::DataLossError(absl::StrCat("output ", tensor->name, ": ", comparison.first_mismatch));
    }
  }
  verification->set_passed(status.ok());
  return status;
}

// Times the call beside the baseline.
v1::Timing Time(const v1::RunRequest& request, KernelCall& call) {
  TimingPlan plan;
  plan.protocol = request.protocol();
  plan.budget_seconds = request.budget_seconds();
  plan.best_seconds = request.best_seconds();
  std::vector<char> flushed(
      plan.protocol == v1::TIMING_PROTOCOL_COLD ? static_cast<size_t>(request.flush_bytes()) : 0);
  char fill = 0;
  const auto flush = [&flushed, &fill] { std::memset(flushed.data(), ++fill, flushed.size()); };
  const absl::StatusOr<v1::Timing> timing = TimeUndisturbed(
      kTimingAttempts, request.usual_baseline_seconds(),
      [&request] { return TimeBaseline(request.threads()); },
      [&] {
        return TimeCalls(
            plan, [&call] { call.CallUnchecked(); }, flush, Now);
      });
  return *timing;  // neither can fail on a CPU
}

v1::MeasureStatus StatusOf(const absl::Status& error) {
  return absl::IsResourceExhausted(error) ? v1::MEASURE_STATUS_OUT_OF_MEMORY : v1::MEASURE_STATUS_RUN_ERROR;
}

v1::RunnerResponse Run(const v1::RunRequest& request) {
  const absl::StatusOr<Workload> workload = ParseWorkload(request.workload(), "workload");
  if (!workload.ok()) return Failure(v1::MEASURE_STATUS_RUN_ERROR, std::string(workload.status().message()));
  const absl::StatusOr<TestCase> test = TestCase::Open(*workload, request.case_directory());
  if (!test.ok()) return Failure(v1::MEASURE_STATUS_RUN_ERROR, std::string(test.status().message()));
  absl::StatusOr<std::unique_ptr<KernelCall>> call =
      KernelCall::Load(request.library(), *workload, test->inputs());
  if (!call.ok()) return Failure(StatusOf(call.status()), std::string(call.status().message()));
  (*call)->PoisonOutputs();
  const double start = Now();
  if (const absl::Status called = (*call)->Call(); !called.ok()) {
    return Failure(StatusOf(called), std::string(called.message()));
  }
  const double first_call_seconds = Now() - start;
  v1::RunnerResponse response;
  if (const absl::Status verified = Verify(*workload, *test, **call, response.mutable_verification());
      !verified.ok()) {
    response.set_status(v1::MEASURE_STATUS_WRONG_RESULT);
    response.set_error(std::string(verified.message()));
    return response;
  }
  const bool worthless =
      first_call_seconds > kWorthlessSeconds && first_call_seconds > kWorthless * request.best_seconds();
  if (worthless && request.best_seconds() > 0) {
    *response.mutable_timing() = OneSample(request.protocol(), first_call_seconds);
  } else {
    *response.mutable_timing() = Time(request, **call);
  }
  response.set_status(v1::MEASURE_STATUS_OK);
  return response;
}

}  // namespace

v1::RunnerResponse HandleRunnerRequest(const v1::RunnerRequest& request) {
  return request.has_prepare() ? Prepare(request.prepare()) : Run(request.run());
}

}  // namespace mycc
