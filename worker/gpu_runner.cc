// Handles requests in a loop: it keeps cases in device memory, and verifies, times or proves one kernel after
// the other.
#include "worker/gpu_runner.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "codegen/workload/compare.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/sampled_values.h"
#include "process/framing.h"
#include "process/limits.h"
#include "proto/measure.pb.h"
#include "proto/proof.h"
#include "worker/gpu_call.h"
#include "worker/gpu_case.h"
#include "worker/gpu_cases.h"
#include "worker/gpu_constants.h"
#include "worker/gpu_context.h"
#include "worker/gpu_neighbour.h"
#include "worker/gpu_semantics.h"
#include "worker/gpu_timer.h"
#include "worker/nvml.h"
#include "worker/repetition.h"
#include "worker/timer.h"
#include "worker/undisturbed.h"

namespace mycc {
namespace {

constexpr int kChannel = 3;  // to the worker
// A GPU that heats up under a heavy kernel is slower after it, which more attempts do not change.
constexpr int kTimingAttempts = 2;
// A repeated launch also writes over the outputs and reads them; one under strain takes turns with a
// neighbour.
constexpr double kRepeatedSlowdown = 2, kStrainedSlowdown = 4;
// Cases that are kept in device memory, and what may be lost of it to candidates that do not give it back: as
// shares of what was free at the start.
constexpr double kCaseShare = 0.4, kLeakShare = 0.3;

// An error as a status of the candidate.
v1::MeasureStatus StatusOf(const absl::Status& error) {
  switch (error.code()) {
    case absl::StatusCode::kDataLoss: return v1::MEASURE_STATUS_WRONG_RESULT;
    case absl::StatusCode::kResourceExhausted: return v1::MEASURE_STATUS_OUT_OF_MEMORY;
    case absl::StatusCode::kUnavailable: return v1::MEASURE_STATUS_DEVICE_LOST;
    case absl::StatusCode::kDeadlineExceeded: return v1::MEASURE_STATUS_RUN_TIMEOUT;
    case absl::StatusCode::kFailedPrecondition: return v1::MEASURE_STATUS_WORKER_UNFIT;  // before any call
    default: return v1::MEASURE_STATUS_RUN_ERROR;
  }
}

class GpuRunner {
 public:
  static absl::StatusOr<std::unique_ptr<GpuRunner>> Start(const v1::StartRequest& request) {
    MYCC_ASSIGN_OR_RETURN(const std::string kernels, ReadFile(request.kernels()));
    MYCC_ASSIGN_OR_RETURN(std::unique_ptr<GpuContext> device, GpuContext::Open(kernels));
    MYCC_ASSIGN_OR_RETURN(std::unique_ptr<GpuTimer> timer, GpuTimer::Create(device.get()));
    MYCC_RETURN_IF_ERROR(timer->TimeBaseline().status());  // loads the kernel
    std::unique_ptr<GpuRunner> runner(
        new GpuRunner(std::move(device), std::move(timer), GpuHealth(request.uuid())));
    MYCC_ASSIGN_OR_RETURN(runner->free_at_start_, runner->device_->FreeMemory());
    const double most = kCaseShare * static_cast<double>(runner->free_at_start_);
    runner->cases_ = std::make_unique<GpuCases>(runner->device_.get(), static_cast<int64_t>(most));
    return runner;
  }

  // A runner whose answer is that it is spent must not be destroyed: that might never end.
  v1::RunnerResponse Answer(const v1::RunnerRequest& request) {
    v1::RunnerResponse response;
    response.set_status(v1::MEASURE_STATUS_OK);
    const absl::Status done = request.has_prepare()     ? Prepare(request.prepare(), &response)
                              : request.has_prove()     ? Prove(request.prove(), &response)
                              : request.has_constants() ? MeasureConstants(&response)
                                                        : Run(request.run(), &response);
    if (!done.ok()) {
      response.set_status(StatusOf(done));
      response.set_error(std::string(done.message()));
    }
    health_.Describe(response.mutable_device());
    // The kernel may run for ever, and whatever touches the device, even to give something back, would wait
    // for it.
    if (absl::IsDeadlineExceeded(done)) {
      response.set_spent(true);
      return response;
    }
    calls_.clear();
    // A kernel that spoiled its outputs may have spoiled the inputs and the expected values too.
    if (absl::IsDataLoss(done)) cases_->MendLast();
    const absl::Status healthy = device_->Wait();
    response.set_spent(!healthy.ok() || HasLeaked());
    if (absl::IsUnavailable(healthy)) {
      response.set_status(v1::MEASURE_STATUS_DEVICE_LOST);
      response.set_error(std::string(healthy.message()));
    }
    return response;
  }

 private:
  GpuRunner(std::unique_ptr<GpuContext> device, std::unique_ptr<GpuTimer> timer, GpuHealth health)
      : device_(std::move(device)), timer_(std::move(timer)), health_(std::move(health)) {}

  bool HasLeaked() {
    const absl::StatusOr<int64_t> free = device_->FreeMemory();
    if (!free.ok()) return true;
    const double lost = static_cast<double>(free_at_start_ - *free - cases_->bytes());
    return lost > kLeakShare * static_cast<double>(free_at_start_);
  }

  absl::Status Prepare(const v1::PrepareRequest& request, v1::RunnerResponse* response) {
    // Another case has begun, and would lose what was computed.
    if (request.early() && semantics_ != nullptr) return absl::OkStatus();
    if (semantics_ != nullptr && !semantics_->IsOf(request)) semantics_ = nullptr;
    if (semantics_ == nullptr) MYCC_RETURN_IF_ERROR(BeginSemantics(request));
    if (request.early()) return absl::OkStatus();
    const std::unique_ptr<GpuSemantics> semantics = std::move(semantics_);
    v1::GpuCase& description = *response->mutable_gpu_case();
    description.set_seed(request.seed());
    *description.mutable_permitted() = semantics->TakePermitted();
    if (request.library().empty()) {
      for (const SampledValues& values : semantics->Sample()) {
        v1::GpuCase::Sampled& of_output = *description.add_sampled();
        of_output.mutable_places()->Add(values.places.begin(), values.places.end());
        of_output.set_values(values.values);
      }
      return cases_->Find(request.workload(), description).status();  // tensors that do not fit are known now
    }
    description.set_reference(request.library());
    MYCC_ASSIGN_OR_RETURN(GpuTest* const test, cases_->Find(request.workload(), description));
    return CheckReference(semantics->workload(), semantics->TakeChecked(), test->made.get());
  }

  absl::Status BeginSemantics(const v1::PrepareRequest& request) {
    MYCC_ASSIGN_OR_RETURN(Workload workload, ParseWorkload(request.workload(), "workload"));
    semantics_ = std::make_unique<GpuSemantics>(request, std::move(workload));
    return absl::OkStatus();
  }

  absl::Status MeasureConstants(v1::RunnerResponse* response) {
    MYCC_ASSIGN_OR_RETURN(*response->mutable_constants(), MeasureGpuConstants(device_.get()));
    return absl::OkStatus();
  }

  // The reference kernel's outputs against the language's semantics.
  static absl::Status CheckReference(const Workload& workload, const std::vector<SampledValues>& sampled,
                                     GpuCase* made) {
    for (size_t i = 0; i < workload.outputs.size(); ++i) {
      MYCC_ASSIGN_OR_RETURN(const std::vector<uint8_t> got, made->DownloadOutput(static_cast<int>(i)));
      const Comparison comparison = Compare(sampled[i].expected(), got.data(), ToleranceOf(workload));
      if (!comparison.passed) {
        return absl::DataLossError(absl::StrCat("the reference kernel contradicts the language: output ",
                                                workload.outputs[i]->name, ": ", comparison.first_mismatch));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Run(const v1::RunRequest& request, v1::RunnerResponse* response) {
    if (!request.rivals().empty()) return RunInTurn(request, response);
    MYCC_ASSIGN_OR_RETURN(GpuTest* const test, cases_->Find(request.workload(), request.gpu_case()));
    MYCC_ASSIGN_OR_RETURN(const double first,
                          Try(request.library(), request.first_call_seconds(), test, response));
    const double best = request.best_seconds();
    if (best > 0 && first > kSlowFirstCallSeconds && first > kSlowFirstCallFactor * best) {
      *response->mutable_timing() = OneSample(request.protocol(), first);
      return absl::OkStatus();
    }
    MYCC_RETURN_IF_ERROR(test->repetition->Begin());
    MYCC_ASSIGN_OR_RETURN(std::vector<v1::Timing> timings, Time(request, {calls_[0].get()}));
    const int more = LaunchesWithin(kRepeatShare * request.budget_seconds(),
                                    kRepeatedSlowdown * timings[0].seconds(), 1, kMostRepeats);
    for (int i = 0; i < more; ++i) MYCC_RETURN_IF_ERROR(test->repetition->Launch(calls_[0].get()));
    *response->mutable_timing() = std::move(timings[0]);
    return CheckRepetition(test, more * request.first_call_seconds(), response);
  }

  // Launches a candidate beside a busy neighbour; its outputs must be those that it left alone.
  absl::Status Prove(const v1::ProveRequest& request, v1::RunnerResponse* response) {
    MYCC_ASSIGN_OR_RETURN(GpuTest* const test, cases_->Find(request.workload(), request.gpu_case()));
    MYCC_RETURN_IF_ERROR(Try(request.library(), request.first_call_seconds(), test, response).status());
    MYCC_RETURN_IF_ERROR(test->repetition->Begin());
    const int launches = LaunchesWithin(request.budget_seconds(), kStrainedSlowdown * request.seconds(),
                                        kProvenLaunches, GpuRepetition::kMostLaunches);
    GpuNeighbour neighbour(device_.get(), timer_->flushed());
    for (int i = 0; i < launches; ++i) {
      MYCC_RETURN_IF_ERROR(neighbour.Disturb(i, request.seconds()));
      MYCC_RETURN_IF_ERROR(test->repetition->Launch(calls_[0].get()));
    }
    const absl::Status same = CheckRepetition(test, launches * request.first_call_seconds(), response);
    if (absl::IsDeadlineExceeded(same)) return same;  // what hangs may keep the neighbour waiting
    MYCC_RETURN_IF_ERROR(neighbour.Wait());
    if (!same.ok())
      return absl::Status(same.code(), absl::StrCat("beside a busy neighbour, ", same.message()));
    response->mutable_verification()->set_strained_launches(static_cast<uint32_t>(launches));
    return absl::OkStatus();
  }

  // The launches on the stream, each against the first, and the last against the expected values.
  absl::Status CheckRepetition(GpuTest* test, double limit_seconds, v1::RunnerResponse* response) {
    absl::Status same = test->repetition->Check(limit_seconds);
    if (same.ok()) same = test->made->Verify(response->mutable_verification());
    response->mutable_verification()->set_launches(test->repetition->launches());
    if (!same.ok()) {
      response->clear_timing();
      response->mutable_verification()->set_passed(false);
    }
    return same;
  }

  // A wrong candidate costs itself alone; any other failure ends the round, since it may be anybody's doing.
  absl::Status RunInTurn(const v1::RunRequest& request, v1::RunnerResponse* response) {
    MYCC_ASSIGN_OR_RETURN(GpuTest* const kept, cases_->Find(request.workload(), request.gpu_case()));
    GpuCase* const test = kept->made.get();
    std::vector<std::string> libraries = {request.library()};
    libraries.insert(libraries.end(), request.rivals().begin(), request.rivals().end());
    std::vector<v1::RunnerResponse> responses(libraries.size());
    std::vector<GpuCall*> candidates;
    std::vector<v1::RunnerResponse*> responses_of_candidates;
    for (size_t i = 0; i < libraries.size(); ++i) {
      const absl::Status tried =
          Try(libraries[i], request.first_call_seconds(), kept, &responses[i]).status();
      MYCC_RETURN_IF_ERROR(Judge(tried, test, &responses[i]));
      if (!tried.ok()) continue;
      candidates.push_back(calls_.back().get());
      responses_of_candidates.push_back(&responses[i]);
    }
    std::vector<v1::Timing> timings;
    if (!candidates.empty()) {
      MYCC_ASSIGN_OR_RETURN(timings, Time(request, candidates));
    }
    for (size_t i = 0; i < candidates.size(); ++i) {
      *responses_of_candidates[i]->mutable_timing() = std::move(timings[i]);
      const absl::Status again = TryAgain(candidates[i], test, responses_of_candidates[i]);
      MYCC_RETURN_IF_ERROR(Judge(again, test, responses_of_candidates[i]));
    }
    *response = std::move(responses[0]);
    for (size_t i = 1; i < responses.size(); ++i) *response->add_rivals() = std::move(responses[i]);
    return absl::OkStatus();
  }

  // The status of a candidate among others; an error ends them all.
  absl::Status Judge(const absl::Status& tried, GpuCase* test, v1::RunnerResponse* response) {
    response->set_status(tried.ok() ? v1::MEASURE_STATUS_OK : StatusOf(tried));
    response->set_error(std::string(tried.message()));
    if (!absl::IsDataLoss(tried)) return tried;
    MYCC_ASSIGN_OR_RETURN(const bool whole, test->Restore());
    return whole ? absl::OkStatus() : tried;
  }

  // Loads a candidate, calls it on special inputs and on ordinary ones, and verifies what each call left; the
  // seconds of the second.
  absl::StatusOr<double> Try(const std::string& library, double limit_seconds, GpuTest* test,
                             v1::RunnerResponse* response) {
    GpuCase* const made = test->made.get();
    MYCC_ASSIGN_OR_RETURN(std::unique_ptr<GpuCall> loaded,
                          GpuCall::Load(device_.get(), library, made->workload(), made->Arguments()));
    calls_.push_back(std::move(loaded));
    GpuCall* const call = calls_.back().get();
    const absl::Status permitted = TrySpecial(call, limit_seconds, test);
    if (!permitted.ok() && !absl::IsDataLoss(permitted)) return permitted;
    MYCC_RETURN_IF_ERROR(made->PoisonOutputs());
    MYCC_ASSIGN_OR_RETURN(const double seconds, timer_->TimeOnce(call, limit_seconds));
    MYCC_RETURN_IF_ERROR(made->Verify(response->mutable_verification()));
    response->mutable_verification()->set_launches(1);
    response->mutable_verification()->set_passed(permitted.ok());
    MYCC_RETURN_IF_ERROR(permitted);
    return seconds;
  }

  // Calls on inputs with special values, and puts the ordinary ones in their place. DataLoss when an output
  // holds what the language does not permit.
  absl::Status TrySpecial(GpuCall* call, double limit_seconds, GpuTest* test) {
    const absl::Status called = CallOnSpecial(call, limit_seconds, test);
    if (absl::IsDeadlineExceeded(called)) return called;  // the device does nothing more
    const absl::Status permitted = called.ok() ? test->special->Check() : called;
    const absl::Status drawn = test->made->DrawInputs();
    if (!permitted.ok() && !absl::IsDataLoss(permitted)) return permitted;
    MYCC_RETURN_IF_ERROR(drawn);
    MYCC_RETURN_IF_ERROR(call->Pack());
    return permitted;
  }

  absl::Status CallOnSpecial(GpuCall* call, double limit_seconds, GpuTest* test) {
    MYCC_RETURN_IF_ERROR(test->special->Draw());
    MYCC_RETURN_IF_ERROR(call->Pack());
    MYCC_RETURN_IF_ERROR(test->made->PoisonOutputs());
    return timer_->TimeOnce(call, limit_seconds).status();
  }

  // A result that is right once and wrong when it is repeated is wrong.
  absl::Status TryAgain(GpuCall* call, GpuCase* test, v1::RunnerResponse* response) {
    MYCC_RETURN_IF_ERROR(test->PoisonOutputs());
    MYCC_RETURN_IF_ERROR(call->Enqueue());
    const absl::Status again = test->Verify(response->mutable_verification());
    if (!again.ok()) response->clear_timing();
    response->mutable_verification()->set_launches(1);
    return again;
  }

  absl::StatusOr<std::vector<v1::Timing>> Time(const v1::RunRequest& request,
                                               const std::vector<GpuCall*>& candidates) {
    TimingPlan plan;
    plan.protocol = request.protocol();
    plan.budget_seconds = request.budget_seconds();
    plan.best_seconds = request.best_seconds();
    double probe = 0;
    for (GpuCall* const candidate : candidates) {
      MYCC_ASSIGN_OR_RETURN(const double once, timer_->TimeOnce(candidate, request.first_call_seconds()));
      probe = std::max(probe, once);
    }
    return TimeUndisturbed(
        kTimingAttempts, request.usual_baseline_seconds(), [this] { return timer_->TimeBaseline(); },
        [&]() -> absl::StatusOr<std::vector<v1::Timing>> {
          if (candidates.size() > 1) return timer_->TimeInTurn(candidates, plan, probe);
          MYCC_ASSIGN_OR_RETURN(v1::Timing timing, timer_->Time(candidates[0], plan, probe));
          return std::vector<v1::Timing>{std::move(timing)};
        });
  }

  // In the order in which they are made: what lies in device memory goes before the device.
  const std::unique_ptr<GpuContext> device_;
  const std::unique_ptr<GpuTimer> timer_;
  const GpuHealth health_;
  int64_t free_at_start_ = 0;
  std::unique_ptr<GpuCases> cases_;
  std::unique_ptr<GpuSemantics> semantics_;      // of the case that is to be prepared next
  std::vector<std::unique_ptr<GpuCall>> calls_;  // of the request being answered
};

bool Send(const v1::RunnerResponse& response) {
  return WriteMessage(kChannel, response.SerializeAsString()).ok();
}

}  // namespace

int GpuRunnerMain() {
  ConfineSelf(getppid(), {});
  std::unique_ptr<GpuRunner> runner;
  while (true) {
    const absl::StatusOr<std::string> bytes = ReadMessage(kChannel);
    v1::RunnerRequest request;
    if (!bytes.ok()) _exit(absl::IsUnavailable(bytes.status()) ? 0 : 1);
    if (!request.ParseFromString(*bytes)) _exit(1);
    v1::RunnerResponse response;
    if (request.has_start()) {
      auto started = GpuRunner::Start(request.start());
      response.set_status(started.ok() ? v1::MEASURE_STATUS_OK : v1::MEASURE_STATUS_DEVICE_LOST);
      response.set_error(std::string(started.status().message()));
      response.set_spent(!started.ok());
      if (started.ok()) runner = *std::move(started);
    } else {
      response = runner->Answer(request);
    }
    if (!Send(response)) _exit(1);
    // A broken context or a kernel that runs for ever makes an orderly end impossible, and the driver takes
    // back everything in any case.
    if (response.spent()) _exit(0);
  }
}

}  // namespace mycc
