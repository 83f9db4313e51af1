// Handles one request: it maps the test case, loads the library, and calls, verifies, times or proves the
// kernel.
#include "worker/runner.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/runtime/placement.h"
#include "codegen/workload/arg_reduction.h"
#include "codegen/workload/compare.h"
#include "codegen/workload/parse.h"
#include "proto/proof.h"
#include "worker/baseline_kernel.h"
#include "worker/chain.h"
#include "worker/cpu_constants.h"
#include "worker/kernel_call.h"
#include "worker/repetition.h"
#include "worker/strain.h"
#include "worker/test_case.h"
#include "worker/timer.h"
#include "worker/turns.h"
#include "worker/undisturbed.h"

namespace mycc {
namespace {

constexpr int kTimingAttempts = 4;
constexpr uint32_t kMostProofLaunches = 64;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

v1::RunnerResponse Failure(v1::MeasureStatus status, const std::string& error) {
  v1::RunnerResponse response;
  response.set_status(status);
  response.set_error(error);
  return response;
}

v1::MeasureStatus StatusOf(const absl::Status& error) {
  switch (error.code()) {
    case absl::StatusCode::kResourceExhausted: return v1::MEASURE_STATUS_OUT_OF_MEMORY;
    case absl::StatusCode::kFailedPrecondition: return v1::MEASURE_STATUS_WORKER_UNFIT;  // before any call
    default: return v1::MEASURE_STATUS_RUN_ERROR;
  }
}

v1::RunnerResponse Prepare(const v1::PrepareRequest& request) {
  const absl::StatusOr<Workload> workload = ParseWorkload(request.workload(), "workload");
  const absl::Status made =
      workload.ok() ? TestCase::Make(*workload, request.seed(), request.library(), request.directory())
                    : workload.status();
  if (!made.ok()) return Failure(StatusOf(made), std::string(made.message()));
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

// A candidate that is loaded, and was called once.
struct Contender {
  std::string library;
  std::unique_ptr<KernelCall> call;  // null when that failed
  double load_seconds = 0;           // with the copies of its inputs
  double first_call_seconds = 0;
  v1::RunnerResponse response;

  bool ok() const { return response.status() == v1::MEASURE_STATUS_OK; }
};

// Calls on the inputs with special values, and puts the ordinary ones in their place. DataLoss when an output
// holds what the language does not permit.
absl::Status TrySpecial(const Workload& workload, const TestCase& test, KernelCall* call) {
  call->PoisonOutputs();
  MYCC_RETURN_IF_ERROR(call->Call());
  absl::Status status;
  for (size_t i = 0; i < workload.outputs.size() && status.ok(); ++i) {
    const std::string forbidden = FirstForbidden(test.permitted()[i], call->output(static_cast<int>(i)));
    if (!forbidden.empty())
      status = absl::DataLossError(absl::StrCat("output ", workload.outputs[i]->name, ": ", forbidden));
  }
  MYCC_RETURN_IF_ERROR(call->SetInputs(test.inputs()));
  return status;
}

Contender Try(const std::string& library, const Workload& workload, const TestCase& test) {
  Contender contender{.library = library};
  const double load_start = Now();
  absl::StatusOr<std::unique_ptr<KernelCall>> call =
      KernelCall::Load(library, workload, test.special_inputs());
  contender.load_seconds = Now() - load_start;
  absl::Status called = call.status(), permitted;
  if (call.ok()) {
    permitted = TrySpecial(workload, test, call->get());
    if (!permitted.ok() && !absl::IsDataLoss(permitted)) called = permitted;
  }
  if (called.ok()) {
    (*call)->PoisonOutputs();
    const double start = Now();
    called = (*call)->Call();
    contender.first_call_seconds = Now() - start;
  }
  if (!called.ok()) {
    contender.response = Failure(StatusOf(called), std::string(called.message()));
    return contender;
  }
  v1::Verification* const verification = contender.response.mutable_verification();
  absl::Status verified = Verify(workload, test, **call, verification);
  if (verified.ok()) verified = permitted;
  verification->set_passed(verified.ok());
  contender.response.set_status(verified.ok() ? v1::MEASURE_STATUS_OK : v1::MEASURE_STATUS_WRONG_RESULT);
  contender.response.set_error(std::string(verified.message()));
  verification->set_launches(1);
  contender.call = *std::move(call);
  return contender;
}

v1::RunnerResponse FailureOf(const absl::Status& repeated) {
  return Failure(absl::IsDataLoss(repeated) ? v1::MEASURE_STATUS_WRONG_RESULT : StatusOf(repeated),
                 std::string(repeated.message()));
}

// The bytes of a core's own cache.
int64_t CoreCacheBytes() {
  constexpr int64_t kUsual = 1 << 20;
  const int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? bytes : kUsual;
}

// The calls of kernels as the protocol times them.
class TimedKernels {
 public:
  explicit TimedKernels(const v1::RunRequest& request)
      : request_(request),
        flushed_(request.protocol() == v1::TIMING_PROTOCOL_COLD ? static_cast<size_t>(request.flush_bytes())
                                                                : 0) {}

  TimedCall CallOf(KernelCall* kernel) {
    TimedCall timed{[kernel] { kernel->CallUnchecked(); }};
    if (request_.protocol() == v1::TIMING_PROTOCOL_COLD)
      timed.before = [this] { std::memset(flushed_.data(), ++fill_, flushed_.size()); };
    if (request_.protocol() == v1::TIMING_PROTOCOL_MODEL) {
      const auto chain = std::make_shared<Chain>(kernel->ChainOf(request_.threads(), CoreCacheBytes()));
      timed.before = [chain] { chain->Place(); };
    }
    return timed;
  }

  // Samples of the pacer over its usual time. The pacer is called as it is timed by itself.
  std::function<double()> SlownessBy(KernelCall* pacer) {
    const TimedCall timed = CallOf(pacer);
    const int calls = CallsPerSample(request_.protocol(), request_.pacer_seconds());
    return [this, timed, calls] {
      if (request_.protocol() == v1::TIMING_PROTOCOL_WARM) timed.call();
      return SampleOf(timed, calls, Now) / request_.pacer_seconds();
    };
  }

 private:
  const v1::RunRequest& request_;
  std::vector<char> flushed_;
  char fill_ = 0;
};

// Beside the baseline.
absl::StatusOr<std::vector<v1::Timing>> TimeBesideBaseline(
    const v1::RunRequest& request, int attempts,
    const std::function<absl::StatusOr<std::vector<v1::Timing>>()>& time) {
  return TimeUndisturbed(
      attempts, request.usual_baseline_seconds(), [&request] { return TimeBaseline(request.threads()); },
      time);
}

absl::Status LaunchAgain(KernelCall* call, Repetition* repetition) {
  call->PoisonOutputs();
  MYCC_RETURN_IF_ERROR(call->Call());
  return repetition->Check();
}

// Sees that the last timed launch, and some more, left what the first one did. `seconds`: for all these.
void Repeat(double seconds, v1::Timing timing, Repetition* repetition, Contender* contender) {
  absl::Status same = repetition->Check();
  const int more = LaunchesWithin(seconds, timing.seconds(), 0, kMostRepeats);
  for (int i = 0; i < more && same.ok(); ++i) same = LaunchAgain(contender->call.get(), repetition);
  if (same.ok()) {
    *contender->response.mutable_timing() = std::move(timing);
    contender->response.mutable_verification()->set_launches(repetition->launches());
  } else {
    contender->response = FailureOf(same);
  }
}

// Times a candidate that has been called once, or several in turn, at several placements. At each one but the
// first they are loaded anew, and called once more before they are timed. One that fails then is out, and the
// others begin again.
class PlacedTiming {
 public:
  PlacedTiming(const v1::RunRequest& request, const Workload& workload, const TestCase& test,
               const std::vector<Contender*>& contenders)
      : request_(request), workload_(workload), test_(test), kernels_(request) {
    for (Contender* const contender : contenders)
      timed_.push_back({contender, Repetition(contender->call->outputs())});
  }

  void Run() {
    LoadPacer();
    while (!timed_.empty()) {
      // A pacer, or a rival, corrects what pauses may only avoid.
      const int attempts = slowness_ || timed_.size() > 1 ? 1 : kTimingAttempts;
      const absl::StatusOr<std::vector<v1::Timing>> timings = TimeBesideBaseline(
          request_, attempts, [this] { return timed_.size() == 1 ? TimeOne() : TimeSeveral(); });
      if (timings.ok()) {
        const double seconds = kRepeatShare * request_.budget_seconds() / static_cast<double>(timed_.size());
        for (size_t i = 0; i < timed_.size(); ++i)
          Repeat(seconds, (*timings)[i], &timed_[i].repetition, timed_[i].contender);
        return;
      }
      timed_[failing_].contender->response = FailureOf(timings.status());
      timed_.erase(timed_.begin() + static_cast<std::ptrdiff_t>(failing_));
    }
  }

 private:
  struct Timed {
    Contender* contender;
    Repetition repetition;
  };

  // A moment is compared with others by the same placement of the pacer. Without it, or where the tensors
  // take longer to copy than all timing may take, the candidate is timed as a first one is.
  void LoadPacer() {
    if (request_.pacer().empty() || Plan().placing_seconds > request_.budget_seconds()) return;
    absl::StatusOr<std::unique_ptr<KernelCall>> call =
        KernelCall::Load(request_.pacer(), workload_, test_.inputs());
    if (!call.ok() || !(*call)->Call().ok()) return;
    pacer_ = *std::move(call);
    slowness_ = kernels_.SlownessBy(pacer_.get());
  }

  TimingPlan Plan() const {
    TimingPlan plan{.protocol = request_.protocol(),
                    .budget_seconds = request_.budget_seconds(),
                    .best_seconds = request_.best_seconds()};
    for (const Timed& timed : timed_) plan.placing_seconds += timed.contender->load_seconds;
    return plan;
  }

  absl::StatusOr<std::vector<v1::Timing>> TimeSeveral() {
    return TimeCallsAtPlacements(
        Plan(), [this](int placement) { return Place(placement); }, Now);
  }

  absl::StatusOr<std::vector<v1::Timing>> TimeOne() {
    const auto place = [this](int placement) -> absl::StatusOr<TimedCall> {
      MYCC_ASSIGN_OR_RETURN(const std::vector<TimedCall> calls, Place(placement));
      return calls[0];
    };
    MYCC_ASSIGN_OR_RETURN(v1::Timing timing, TimeCallAtPlacements(Plan(), place, Now));
    return std::vector<v1::Timing>{std::move(timing)};
  }

  absl::StatusOr<std::vector<TimedCall>> Place(int placement) {
    const bool all_loaded =
        std::ranges::all_of(timed_, [](const Timed& timed) { return timed.contender->call != nullptr; });
    if (placement > 0 || !all_loaded) {
      // All are closed first: what is still open is not loaded anew.
      for (failing_ = 0; failing_ < timed_.size(); ++failing_) MYCC_RETURN_IF_ERROR(Close(&timed_[failing_]));
      const Spacer spacer(placement);
      for (failing_ = 0; failing_ < timed_.size(); ++failing_)
        MYCC_RETURN_IF_ERROR(Load(placement, &timed_[failing_]));
    }
    std::vector<TimedCall> calls;
    for (const Timed& timed : timed_) {
      KernelCall* const call = timed.contender->call.get();
      call->PoisonOutputs();
      calls.push_back(kernels_.CallOf(call));
      calls.back().slowness = slowness_;
    }
    return calls;
  }

  absl::Status Close(Timed* timed) {
    const absl::Status same =
        timed->contender->call == nullptr ? absl::OkStatus() : timed->repetition.Check();
    timed->contender->call.reset();
    return same;
  }

  absl::Status Load(int placement, Timed* timed) {
    Contender& contender = *timed->contender;
    MYCC_ASSIGN_OR_RETURN(contender.call,
                          KernelCall::Load(contender.library, workload_, test_.inputs(), placement));
    timed->repetition.MoveTo(contender.call->outputs());
    return LaunchAgain(contender.call.get(), &timed->repetition);
  }

  const v1::RunRequest& request_;
  const Workload& workload_;
  const TestCase& test_;
  TimedKernels kernels_;
  std::unique_ptr<KernelCall> pacer_;
  std::function<double()> slowness_;
  std::vector<Timed> timed_;
  size_t failing_ = 0;  // of these, the one at fault when a placement fails
};

v1::RunnerResponse Run(const v1::RunRequest& request) {
  const absl::StatusOr<Workload> workload = ParseWorkload(request.workload(), "workload");
  if (!workload.ok()) return Failure(v1::MEASURE_STATUS_RUN_ERROR, std::string(workload.status().message()));
  const absl::StatusOr<TestCase> test = TestCase::Open(*workload, request.case_directory());
  if (!test.ok()) return Failure(v1::MEASURE_STATUS_WORKER_UNFIT, std::string(test.status().message()));
  std::vector<Contender> contenders;
  contenders.push_back(Try(request.library(), *workload, *test));
  for (const std::string& rival : request.rivals()) contenders.push_back(Try(rival, *workload, *test));

  std::vector<Contender*> sound;
  for (Contender& contender : contenders) {
    if (contender.ok()) sound.push_back(&contender);
  }
  const double first = contenders[0].first_call_seconds;
  const bool worthless = request.rivals().empty() && request.best_seconds() > 0 &&
                         first > kSlowFirstCallSeconds &&
                         first > kSlowFirstCallFactor * request.best_seconds();
  if (worthless && contenders[0].ok()) {
    *contenders[0].response.mutable_timing() = OneSample(request.protocol(), first);
  } else if (!sound.empty()) {
    PlacedTiming(request, *workload, *test, sound).Run();
  }
  v1::RunnerResponse response = std::move(contenders[0].response);
  for (size_t i = 1; i < contenders.size(); ++i) *response.add_rivals() = std::move(contenders[i].response);
  return response;
}

v1::RunnerResponse Prove(const v1::ProveRequest& request) {
  const absl::StatusOr<Workload> workload = ParseWorkload(request.workload(), "workload");
  if (!workload.ok()) return Failure(v1::MEASURE_STATUS_RUN_ERROR, std::string(workload.status().message()));
  const absl::StatusOr<TestCase> test = TestCase::Open(*workload, request.case_directory());
  if (!test.ok()) return Failure(v1::MEASURE_STATUS_WORKER_UNFIT, std::string(test.status().message()));
  Contender contender = Try(request.library(), *workload, *test);
  if (!contender.ok()) return std::move(contender.response);
  Repetition repetition(contender.call->outputs());
  const BusyNeighbour neighbour;
  const double end = Now() + request.budget_seconds();
  uint32_t strained = 0;
  for (; strained < kProvenLaunches || (strained < kMostProofLaunches && Now() < end); ++strained) {
    const int team = StrainedTeam(static_cast<int>(strained), request.threads());
    SetTeam(team);
    const absl::Status same = LaunchAgain(contender.call.get(), &repetition);
    if (same.ok()) continue;
    return FailureOf(absl::Status(
        same.code(),
        absl::StrCat("on a team of ", team, " threads beside a busy neighbour, ", same.message())));
  }
  v1::Verification& verification = *contender.response.mutable_verification();
  verification.Clear();
  const absl::Status again = Verify(*workload, *test, *contender.call, &verification);
  if (!again.ok()) return FailureOf(again);
  verification.set_launches(repetition.launches());
  verification.set_strained_launches(strained);
  return std::move(contender.response);
}

v1::RunnerResponse MeasureConstants(const v1::ConstantsRequest& request) {
  v1::RunnerResponse response;
  response.set_status(v1::MEASURE_STATUS_OK);
  *response.mutable_constants() = MeasureCpuConstants(std::max(1, request.threads()));
  return response;
}

}  // namespace

v1::RunnerResponse HandleRunnerRequest(const v1::RunnerRequest& request) {
  if (request.has_prepare()) return Prepare(request.prepare());
  if (request.has_constants()) return MeasureConstants(request.constants());
  return request.has_prove() ? Prove(request.prove()) : Run(request.run());
}

}  // namespace mycc
