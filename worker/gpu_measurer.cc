// The line between the builders and the device's thread, and the device thread's work on one assignment.
#include "worker/gpu_measurer.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/cuda/portable.h"
#include "codegen/workload/parse.h"
#include "process/child.h"
#include "process/host_lock.h"
#include "proto/names.h"
#include "proto/proof.h"
#include "worker/confined_children.h"
#include "worker/device.h"
#include "worker/measuring_cubin.h"
#include "worker/measuring_kernels.h"

namespace mycc {
namespace {

// A candidate is stopped when it takes this many times the best one's time.
constexpr double kTimeLimitFactor = 100;
constexpr double kLeastSeconds = 0.3;  // for a first call
constexpr double kStrained = 10;       // times slower than alone at most, beside a neighbour
constexpr size_t kMostReferences = 512, kMostCases = 8;  // cases: of a reference
constexpr double kSecondsBetweenWords = 10;

// The lesser of two times; 0 is no time.
double LesserOf(double a, double b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuMeasurer>> GpuMeasurer::Create(const Gpu& gpu, BuildPool* builders,
                                                                 GpuMeasurerOptions options,
                                                                 std::function<void(const std::string&)> log,
                                                                 FetchBuild fetch) {
  MYCC_ASSIGN_OR_RETURN(const v1::Toolchain toolchain, GpuToolchain());
  MYCC_ASSIGN_OR_RETURN(ScratchFolder scratch, ScratchFolder::Create());
  if (options.confinement.mode != ConfinementMode::kOff) GiveToChildren(scratch.path());
  std::unique_ptr<GpuMeasurer> measurer(new GpuMeasurer(
      gpu, toolchain, builders, std::move(options), std::move(scratch), std::move(log), std::move(fetch)));
  MYCC_ASSIGN_OR_RETURN(measurer->unconfined_, Unconfined(measurer->runner_confinement_));
  MYCC_RETURN_IF_ERROR(measurer->Start(absl::StrCat(toolchain.mycc(), " ", toolchain.nvrtc())));
  return measurer;
}

GpuMeasurer::GpuMeasurer(const Gpu& gpu, const v1::Toolchain& toolchain, BuildPool* builders,
                         GpuMeasurerOptions options, ScratchFolder scratch,
                         std::function<void(const std::string&)> log, FetchBuild fetch)
    : gpu_(gpu),
      builders_(builders),
      options_(std::move(options)),
      scratch_(std::move(scratch)),
      runner_confinement_(ForDevice(options_.confinement, scratch_.path())),
      log_(std::move(log)),
      fetch_(std::move(fetch)),
      kept_(scratch_.path()),
      references_(scratch_.path(), kMostReferences,
                  [builders](BuildWork work) { builders->Start(std::move(work), /*first=*/true); }),
      book_(toolchain),
      device_(gpu.info) {
  builders->LetWriteTo(scratch_.path());
}

// A child compiles: the compiler's memory is not the worker's.
absl::StatusOr<std::string> GpuMeasurer::CompileMeasuringKernels() const {
  v1::BuildRequest request;
  request.set_target(PrintTarget(gpu_.target));
  request.set_directory(scratch_.path());
  const BuildOutcome kernels = builders_->BuildAll({request})[0];
  if (kernels.ok()) return ReadFile(kernels.built.library());
  return absl::FailedPreconditionError(
      absl::StrCat(gpu_.info.device(), ": its kernels cannot be compiled here: ", kernels.ending.error));
}

absl::Status GpuMeasurer::Start(const std::string& compilers) {
  MYCC_ASSIGN_OR_RETURN(
      const std::string cubin,
      MeasuringCubin(CacheFolder("measuring").value_or(""), {kMeasuringKernels, compilers, gpu_.target.arch},
                     [this] { return CompileMeasuringKernels(); }));
  v1::StartRequest start;
  start.set_kernels(absl::StrCat(scratch_.path(), "/measuring.cubin"));  // where its runner may read
  MYCC_RETURN_IF_ERROR(WriteFileAtomically(start.kernels(), cubin));
  start.set_uuid(gpu_.uuid);
  // The runner sees this device alone, as its first one.
  runners_ = std::make_unique<GpuRunners>(ChildCommand{kGpuRunCommand,
                                                       runner_confinement_.ToArguments(),
                                                       {absl::StrCat("CUDA_VISIBLE_DEVICES=", gpu_.uuid)}},
                                          start);
  thread_ = std::thread([this] { RunDevice(); });
  return absl::OkStatus();
}

GpuMeasurer::~GpuMeasurer() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  references_.Stop();
  if (thread_.joinable()) thread_.join();
}

v1::BuildRequest GpuMeasurer::RequestOf(const v1::Assignment& assignment) const {
  v1::BuildRequest request;
  request.set_workload(assignment.workload());
  request.set_target(assignment.target());
  request.set_directory(scratch_.path());
  return request;
}

void GpuMeasurer::Measure(const std::vector<v1::Assignment>& assignments, const IsRevoked& is_revoked,
                          const OnMeasured& done) {
  Batch batch{is_revoked, done};
  for (const v1::Assignment& assignment : assignments) {
    if (is_revoked(assignment.lease())) continue;
    OpenIn(&batch);
    StartBuilds(assignment, &batch);
  }
  const MutexLock lock(&mutex_);
  while (batch.open > 0) changed_.Wait(&mutex_);
}

void GpuMeasurer::OpenIn(Batch* batch) {
  const MutexLock lock(&mutex_);
  ++batch->open;
  if (++open_ == 1) work_began_ = Clock::now();
}

absl::StatusOr<std::string> GpuMeasurer::Fetched(const v1::Assignment& assignment,
                                                 const std::string& digest) {
  if (fetch_ == nullptr) return absl::FailedPreconditionError("nothing is fetched here");
  MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(assignment.workload(), "workload"));
  MYCC_ASSIGN_OR_RETURN(const Target target, ParseTarget(assignment.target()));
  MYCC_ASSIGN_OR_RETURN(const std::string bytes, fetch_(digest));
  if (Sha256Hex(bytes) != digest) return absl::DataLossError("its bytes are others");
  MYCC_RETURN_IF_ERROR(ParsePortable(bytes, workload, target).status());
  const std::string path = absl::StrCat(scratch_.path(), "/fetched-", fetched_++, ".kernel");
  MYCC_RETURN_IF_ERROR(WriteFileAtomically(path, bytes));
  return path;
}

std::string GpuMeasurer::FetchedOrNone(const v1::Assignment& assignment, const std::string& digest) {
  if (digest.empty()) return "";
  absl::StatusOr<std::string> path = Fetched(assignment, digest);
  if (path.ok()) return *std::move(path);
  if (log_) {
    log_(absl::StrCat(
        gpu_.info.device(),
        ": builds a candidate, since what another worker built cannot be had: ", path.status().message()));
  }
  return "";
}

void GpuMeasurer::StartBuilds(const v1::Assignment& assignment, Batch* batch) {
  const std::vector<std::string> traces = TracesOf(assignment);
  std::vector<std::string> digests = {assignment.artifact()};
  digests.insert(digests.end(), assignment.rival_artifacts().begin(), assignment.rival_artifacts().end());
  digests.resize(traces.size());
  // A workload's first candidate has its reference built, before all else.
  const std::shared_ptr<Reference> reference = references_.Take(RequestOf(assignment));
  if (batch->cases.emplace(reference.get(), assignment.seed()).second)
    BeginCase(Built{batch, assignment, reference, {}, {}});
  const auto built =
      std::make_shared<Built>(Built{batch, assignment, reference, std::move(digests), {}, traces.size()});
  built->outcomes.resize(traces.size());
  for (size_t i = 0; i < traces.size(); ++i) {
    v1::BuildRequest request = RequestOf(assignment);
    request.set_trace(traces[i]);
    if (std::optional<BuildOutcome> kept = kept_.Find(request, built->fetched[i])) {
      OnBuilt(built, i, std::move(kept));
      continue;
    }
    // Builds of equal code are named alike.
    request.set_directory(absl::StrCat(scratch_.path(), "/build-", builds_++));
    (void)MakeFolder(request.directory());  // one that cannot be made is the build's error
    built->folders.push_back(request.directory());
    request.set_built(FetchedOrNone(assignment, built->fetched[i]));
    const std::string file = request.built();
    builders_->Start({std::move(request), [built] { return !built->IsUnwanted(); },
                      [this, built, i, file](std::optional<BuildOutcome> outcome) {
                        std::error_code ignored;
                        if (!file.empty()) std::filesystem::remove(file, ignored);
                        OnBuilt(built, i, std::move(outcome));
                      }});
  }
}

void GpuMeasurer::BeginCase(const Built& of_case) {
  const auto put_first = [this](const Built& built) {
    const MutexLock lock(&mutex_);
    line_.push_front(built);
    changed_.NotifyAll();
  };
  for (int items = 0; items < 2; ++items) OpenIn(of_case.batch);  // both, before either can end
  Built early = of_case;
  early.is_early = true;
  put_first(early);
  references_.WhenBuilt(of_case.reference, [put_first, of_case] { put_first(of_case); });
}

void GpuMeasurer::OnBuilt(const std::shared_ptr<Built>& built, size_t i,
                          std::optional<BuildOutcome> outcome) {
  const MutexLock lock(&mutex_);
  built->is_wanted = built->is_wanted && outcome.has_value();
  if (outcome) built->outcomes[i] = *std::move(outcome);
  if (--built->open > 0) return;
  line_.push_back(std::move(*built));
  changed_.NotifyAll();
}

void GpuMeasurer::RunDevice() {
  runners_->WarmUp();
  while (true) {
    std::optional<Built> built;
    std::function<void()> errand;
    bool is_proof_due = false;
    {
      const MutexLock lock(&mutex_);
      if (open_ == 0) NoteIdle(/*last=*/false);
      while (line_.empty() && errand_ == nullptr && leaders_.empty() && !stopping_) changed_.Wait(&mutex_);
      errand = std::exchange(errand_, nullptr);
      is_proof_due = errand == nullptr && IsProofDue();
      if (errand == nullptr && !is_proof_due) {
        if (line_.empty()) break;
        share_.is_working = true;
        built = std::move(line_.front());
        line_.pop_front();
      }
    }
    if (errand != nullptr) {
      runners_->FinishWarmUp();
      errand();
    } else if (is_proof_due) {
      SettleLeaders();
    } else {
      Take(*std::move(built));
    }
  }
  runners_.reset();  // children die with the thread that made them
  const MutexLock lock(&mutex_);
  NoteIdle(/*last=*/true);
}

// When the line is empty, or when the leaders alone keep their batch open.
bool GpuMeasurer::IsProofDue() {
  return !leaders_.empty() && (line_.empty() || leaders_[0].built.batch->open == leaders_.size());
}

absl::StatusOr<v1::DeviceConstants> GpuMeasurer::MeasureConstants(const std::function<bool()>& gives_up) {
  std::optional<absl::StatusOr<v1::DeviceConstants>> measured;
  const MutexLock lock(&mutex_);
  errand_ = [this, &gives_up, &measured] {
    absl::StatusOr<v1::DeviceConstants> made = CallForConstants(gives_up);
    const MutexLock taking(&mutex_);
    measured = std::move(made);
    changed_.NotifyAll();
  };
  changed_.NotifyAll();
  while (!measured) changed_.Wait(&mutex_);
  return *std::move(measured);
}

absl::StatusOr<v1::DeviceConstants> GpuMeasurer::CallForConstants(const std::function<bool()>& gives_up) {
  const HostLock alone(HostLock::Mode::kTiming, gpu_.uuid, gives_up);
  if (alone.gave_up()) return absl::CancelledError("the worker is stopping");
  v1::RunnerRequest request;
  request.mutable_constants();
  Ending ending;
  absl::StatusOr<v1::RunnerResponse> response = runners_->Call(request, options_.constants_seconds, &ending);
  if (!response.ok()) return ErrorOf(ending);
  if (response->status() != v1::MEASURE_STATUS_OK) return ErrorOf({response->status(), response->error()});
  return std::move(*response->mutable_constants());
}

void GpuMeasurer::Take(Built built) {
  if (HoldsEqualBinary(built)) SettleLeaders();
  gave_up_ = false;
  if (!built.is_wanted || built.IsUnwanted()) return Close(built);
  if (built.is_case()) {
    Prepare(built);
    return Close(built);
  }
  runners_->FinishWarmUp();
  if (built.assignment.rivals().empty()) return MeasureCandidate(std::move(built));
  std::vector<v1::MeasureResult> results = book_.Make(built.assignment, built.outcomes, LaneOf(built));
  for (v1::MeasureResult& result : results) *result.mutable_device() = device_;
  Finish(built, std::move(results));
}

bool GpuMeasurer::HoldsEqualBinary(const Built& built) const {
  const auto is_equal = [&built](const Leader& leader) {
    const std::string& digest = leader.built.outcomes[0].built.code_digest();
    return !digest.empty() && std::ranges::any_of(built.outcomes, [&digest](const BuildOutcome& outcome) {
      return outcome.built.code_digest() == digest;
    });
  };
  return std::ranges::any_of(leaders_, is_equal);
}

void GpuMeasurer::MeasureCandidate(Built built) {
  const auto is_rival = [&built](const Leader& leader) {
    return leader.built.batch == built.batch && BestKeyOf(leader.built) == BestKeyOf(built);
  };
  if (!leaders_.empty() && !is_rival(leaders_[0])) SettleLeaders();
  gave_up_ = false;
  Best& best = built.batch->best[BestKeyOf(built)];
  const double served = built.assignment.best_seconds();
  built.assignment.set_best_seconds(LesserOf(served, best.measured));
  v1::MeasureResult result = book_.Measure(built.assignment, built.outcomes[0], LaneOf(built));
  built.assignment.set_best_seconds(served);
  *result.mutable_device() = device_;
  if (result.status() == v1::MEASURE_STATUS_OK) {
    best.measured = LesserOf(best.measured, result.timing().seconds());
    if (IsProven(result.verification())) best.proven = LesserOf(best.proven, result.timing().seconds());
  }
  if (gave_up_ || !ResultBook::OwesProof(LesserOf(served, best.proven), result))
    return Finish(built, {std::move(result)});
  leaders_.push_back({std::move(built), std::move(result)});
}

// From the fastest on: where one fails, the next one leads.
void GpuMeasurer::SettleLeaders() {
  std::vector<Leader> leaders = std::exchange(leaders_, {});
  std::ranges::stable_sort(leaders, [](const Leader& a, const Leader& b) {
    return a.result.timing().seconds() < b.result.timing().seconds();
  });
  for (auto& [built, result] : leaders) {
    Best& best = built.batch->best[BestKeyOf(built)];
    gave_up_ = false;
    const double proven = LesserOf(built.assignment.best_seconds(), best.proven);
    // A worker that stops still reports what it has measured.
    if (ResultBook::OwesProof(proven, result) && !built.IsUnwanted()) {
      book_.Prove(built.assignment, built.outcomes[0], LaneOf(built), &result);
      *result.mutable_device() = device_;
      if (!gave_up_ && result.status() == v1::MEASURE_STATUS_OK)
        best.proven = LesserOf(best.proven, result.timing().seconds());
    }
    best.measured = best.proven;
    Finish(built, {std::move(result)});
  }
}

void GpuMeasurer::Finish(const Built& built, std::vector<v1::MeasureResult> results) {
  if (!gave_up_) {
    share_.candidates += static_cast<int>(results.size());
    KeepOrForget(built, results);
    built.batch->done(built.assignment, std::move(results));
  }
  Close(built);
}

void GpuMeasurer::Close(const Built& built) {
  std::error_code ignored;
  for (const BuildOutcome& outcome : built.outcomes) {
    if (!outcome.built.library().empty()) std::filesystem::remove(outcome.built.library(), ignored);
  }
  for (const std::string& folder : built.folders) std::filesystem::remove_all(folder, ignored);
  const MutexLock lock(&mutex_);
  --built.batch->open;
  --open_;
  changed_.NotifyAll();
}

// A failure comes again, or is mended, with the first candidate.
void GpuMeasurer::Prepare(const Built& built) {
  if (built.reference->cases.contains(built.assignment.seed())) return;
  const HostLock alone(HostLock::Mode::kTiming, gpu_.uuid, [&built] { return built.IsUnwanted(); });
  if (alone.gave_up()) return;
  if (!built.is_early) {
    (void)PreparedCase(built);
    return;
  }
  v1::RunnerRequest request = PrepareRequestOf(built.assignment);
  request.mutable_prepare()->set_early(true);
  Ending ending;
  (void)runners_->Call(request, options_.prepare_seconds, &ending);
}

v1::RunnerRequest GpuMeasurer::PrepareRequestOf(const v1::Assignment& assignment) {
  v1::RunnerRequest request;
  request.mutable_prepare()->set_workload(assignment.workload());
  request.mutable_prepare()->set_seed(assignment.seed());
  return request;
}

void GpuMeasurer::KeepOrForget(const Built& built, const std::vector<v1::MeasureResult>& results) {
  v1::BuildRequest candidate = RequestOf(built.assignment);
  const std::vector<std::string> traces = TracesOf(built.assignment);
  for (size_t i = 0; i < traces.size(); ++i) {
    candidate.set_trace(traces[i]);
    const bool good = i < results.size() && results[i].status() == v1::MEASURE_STATUS_OK;
    kept_.Measured(candidate, built.fetched[i], built.outcomes[i], good);
  }
}

std::pair<const Reference*, v1::TimingProtocol> GpuMeasurer::BestKeyOf(const Built& built) {
  return {built.reference.get(), built.assignment.protocol()};
}

Lane GpuMeasurer::LaneOf(const Built& built) {
  return {[this, &built](const auto& libraries, v1::MeasureResult* failure) {
            return Run(built, libraries, failure);
          },
          [this, &built](const std::string& library, double seconds, v1::MeasureResult* failure) {
            return Prove(built, library, seconds, failure);
          }};
}

std::optional<v1::RunnerResponse> GpuMeasurer::GiveUp(v1::MeasureResult* failure) {
  gave_up_ = true;
  Fail(v1::MEASURE_STATUS_WORKER_UNFIT, "the trial was not wanted any more", failure);
  return std::nullopt;
}

std::optional<v1::RunnerResponse> GpuMeasurer::Run(const Built& built,
                                                   const std::vector<std::string>& libraries,
                                                   v1::MeasureResult* failure) {
  const v1::Assignment& assignment = built.assignment;
  const HostLock alone(HostLock::Mode::kTiming, gpu_.uuid, [&built] { return built.IsUnwanted(); });
  if (alone.gave_up()) return GiveUp(failure);
  const absl::StatusOr<v1::GpuCase> test = PreparedCase(built);
  if (!test.ok()) {
    FailWithout(test.status(), failure);
    return std::nullopt;
  }
  const double best = assignment.best_seconds();
  const double candidates = static_cast<double>(libraries.size());
  v1::RunnerRequest request;
  v1::RunRequest& run = *request.mutable_run();
  run.set_workload(assignment.workload());
  run.set_library(libraries[0]);
  run.mutable_rivals()->Add(libraries.begin() + 1, libraries.end());
  *run.mutable_gpu_case() = *test;
  run.set_protocol(assignment.protocol());
  run.set_best_seconds(best);
  run.set_budget_seconds(candidates * options_.timing_seconds);
  run.set_usual_baseline_seconds(baselines_.Usual());
  run.set_first_call_seconds(
      best > 0 ? std::min(options_.first_call_seconds, kLeastSeconds + kTimeLimitFactor * best)
               : options_.first_call_seconds);
  std::optional<v1::RunnerResponse> response = Call(request, candidates * options_.run_seconds, failure);
  if (response) baselines_.Add(response->timing().baseline_seconds());
  return response;
}

std::optional<v1::RunnerResponse> GpuMeasurer::Prove(const Built& built, const std::string& library,
                                                     double seconds, v1::MeasureResult* failure) {
  const HostLock alone(HostLock::Mode::kTiming, gpu_.uuid, [&built] { return built.IsUnwanted(); });
  if (alone.gave_up()) return GiveUp(failure);
  const absl::StatusOr<v1::GpuCase> test = PreparedCase(built);
  if (!test.ok()) {
    FailWithout(test.status(), failure);
    return std::nullopt;
  }
  v1::RunnerRequest request;
  v1::ProveRequest& prove = *request.mutable_prove();
  prove.set_workload(built.assignment.workload());
  prove.set_library(library);
  *prove.mutable_gpu_case() = *test;
  prove.set_seconds(seconds);
  prove.set_budget_seconds(options_.proof_seconds);
  prove.set_first_call_seconds(
      std::min(options_.first_call_seconds, kLeastSeconds + kTimeLimitFactor * seconds));
  return Call(request, options_.run_seconds + kProvenLaunches * kStrained * seconds, failure);
}

std::optional<v1::RunnerResponse> GpuMeasurer::Call(const v1::RunnerRequest& request, double seconds,
                                                    v1::MeasureResult* failure) {
  const auto start = Clock::now();
  Ending ending;
  absl::StatusOr<v1::RunnerResponse> response = runners_->Call(request, seconds, &ending);
  share_.busy_seconds += SecondsSince(start);
  if (!response.ok()) {
    Fail(ending.status, ending.error, failure);
    return std::nullopt;
  }
  if (response->has_device()) {
    v1::DeviceInfo now = gpu_.info;
    now.clear_throttled_by();
    now.MergeFrom(response->device());
    device_ = now;
  }
  return *std::move(response);
}

absl::StatusOr<v1::GpuCase> GpuMeasurer::PreparedCase(const Built& built) {
  PreparedCases& cases = built.reference->cases;
  const uint64_t seed = built.assignment.seed();
  if (const auto known = cases.find(seed); known != cases.end()) return known->second;
  if (cases.size() >= kMostCases) cases.clear();
  absl::StatusOr<v1::GpuCase> prepared = PrepareCase(built);
  // Any other failure would come again.
  if (!IsPassingFailure(prepared.status())) cases.emplace(seed, prepared);
  return prepared;
}

absl::StatusOr<v1::GpuCase> GpuMeasurer::PrepareCase(const Built& built) {
  const v1::Assignment& assignment = built.assignment;
  MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(assignment.workload(), "workload"));
  v1::RunnerRequest request = PrepareRequestOf(assignment);
  v1::PrepareRequest& prepare = *request.mutable_prepare();
  const BuildOutcome reference = references_.Await(built.reference);
  if (IsInfrastructureFailure(reference.ending.status)) return ErrorOf(reference.ending);
  // A reference that cannot be built, or would take too long, is done without.
  if (reference.ok() && CountFlops(workload) <= options_.max_reference_flops)
    prepare.set_library(reference.built.library());
  Ending ending;
  while (true) {
    const absl::StatusOr<v1::RunnerResponse> response =
        runners_->Call(request, options_.prepare_seconds, &ending);
    if (response.ok() && response->status() == v1::MEASURE_STATUS_OK) return response->gpu_case();
    if (response.ok()) ending = {response->status(), response->error()};
    if (IsInfrastructureFailure(ending.status) || prepare.library().empty()) return ErrorOf(ending);
    // One that contradicts the language is a fault of the compiler, and no candidate's.
    if (ending.status == v1::MEASURE_STATUS_WRONG_RESULT) return absl::InternalError(ending.error);
    prepare.clear_library();  // one that crashes or takes too long is done without as well
  }
}

// There is nothing to do any more. Says now and then, and at last, what share of the time in which there was
// something the device has worked.
void GpuMeasurer::NoteIdle(bool last) {
  if (share_.is_working) share_.wall_seconds += SecondsSince(work_began_);
  share_.is_working = false;
  if (share_.candidates == 0 || (!last && SecondsSince(share_.said) < kSecondsBetweenWords)) return;
  if (log_) {
    log_(absl::StrFormat("%s: measured %d candidates in %.1f s, busy %.0f %% of it", gpu_.info.device(),
                         share_.candidates, share_.wall_seconds,
                         100 * std::min(1.0, share_.busy_seconds / share_.wall_seconds)));
  }
  share_ = {.said = Clock::now()};
}

}  // namespace mycc
