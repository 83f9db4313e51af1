// Builds a batch of libraries, then sends each to a runner process under the host's lock, and turns answers
// into results.
#include "worker/cpu_measurer.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/target/target.h"
#include "codegen/workload/parse.h"
#include "process/host_lock.h"
#include "proto/names.h"
#include "proto/proof.h"
#include "worker/confined_children.h"
#include "worker/device.h"

namespace mycc {
namespace {

// A candidate is stopped when it takes this many times the best one's time.
constexpr double kTimeLimitFactor = 200;
constexpr double kStartSeconds = 4;  // loading, copying and verifying, also on a busy host
constexpr double kStrained = 10;     // times slower than alone at most, on a processor for each thread
// Candidates that are timed in turn have all but the same times: the budget of each, relative to one alone.
constexpr double kTurnsShare = 2;
// The fastest of many single timings is partly the luckiest one: a candidate that would lead by more than
// this is timed twice.
constexpr double kLeadsClearly = 0.95;
constexpr int kFewestSamples = 5;  // of a timing that was not given up

void RemoveFile(const std::string& path) {
  std::error_code ignored;  // the scratch folder goes with the worker
  std::filesystem::remove(path, ignored);
}

int ThreadsOf(const std::string& target_text) {
  const absl::StatusOr<Target> target = ParseTarget(target_text);
  return target.ok() ? std::max(target->threads, 1) : 1;
}

bool LeadsClearly(const v1::RunnerResponse& response, double best_seconds) {
  return response.status() == v1::MEASURE_STATUS_OK &&
         response.timing().seconds() < kLeadsClearly * best_seconds;
}

// The slower of two sound timings counts, and an unsound one in any case. One that was given up after a slow
// start says nothing against the first.
v1::RunnerResponse Doubted(v1::RunnerResponse first, v1::RunnerResponse second) {
  const v1::Timing& again = second.timing();
  const bool counts =
      again.samples_seconds_size() >= kFewestSamples && again.seconds() > first.timing().seconds();
  return second.status() != v1::MEASURE_STATUS_OK || counts ? std::move(second) : std::move(first);
}

int64_t FolderBytes(const std::string& folder) {
  int64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    bytes += static_cast<int64_t>(entry.file_size(error));
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuMeasurer>> CpuMeasurer::Create(CpuMeasurerOptions options) {
  MYCC_ASSIGN_OR_RETURN(ScratchFolder scratch, ScratchFolder::Create());
  absl::StatusOr<std::string> cache = CacheFolder("reference");
  // Without a cache, references live as long as the worker.
  std::string reference_folder = cache.ok() ? *cache : absl::StrCat(scratch.path(), "/reference");
  std::error_code error;
  std::filesystem::create_directory(reference_folder, error);
  if (error)
    return absl::UnavailableError(
        absl::StrCat("cannot make the folder ", reference_folder, ": ", error.message()));
  if (options.confinement.mode != ConfinementMode::kOff) {
    GiveToChildren(scratch.path());
    GiveToChildren(reference_folder);
  }
  std::unique_ptr<CpuMeasurer> measurer(
      new CpuMeasurer(std::move(options), std::move(scratch), std::move(reference_folder)));
  MYCC_ASSIGN_OR_RETURN(measurer->unconfined_, Unconfined(measurer->runner_confinement_));
  return measurer;
}

CpuMeasurer::CpuMeasurer(CpuMeasurerOptions options, ScratchFolder scratch, std::string reference_folder)
    : options_(std::move(options)),
      scratch_(std::move(scratch)),
      reference_folder_(std::move(reference_folder)),
      runner_confinement_(ForRunner(options_.confinement, scratch_.path(), reference_folder_)),
      device_(DescribeCpu()),
      flush_bytes_(FlushBytes()),
      builders_(options_.builders, options_.build, options_.confinement),
      kept_(scratch_.path()),
      pacers_(&kept_),
      book_(CpuToolchain()) {
  for (const std::string& folder : {scratch_.path(), reference_folder_}) builders_.LetWriteTo(folder);
  builders_.WarmUp();
}

void CpuMeasurer::Measure(const std::vector<v1::Assignment>& assignments, const IsRevoked& is_revoked,
                          const OnMeasured& done) {
  std::vector<v1::Assignment> wanted;
  std::vector<v1::BuildRequest> requests;
  for (const v1::Assignment& assignment : assignments) {
    if (is_revoked(assignment.lease())) continue;
    for (const std::string& trace : TracesOf(assignment)) requests.push_back(BuildOf(assignment, trace));
    wanted.push_back(assignment);
  }
  if (wanted.empty()) return;
  // It starts while the first candidates are built.
  MakeRunner(ThreadsOf(wanted[0].target()));
  runner_->WarmUp();
  const std::vector<BuildOutcome> builds = Build(requests, [&] {
    return std::ranges::any_of(
        wanted, [&](const v1::Assignment& assignment) { return !is_revoked(assignment.lease()); });
  });
  auto next = builds.begin();
  for (const v1::Assignment& assignment : wanted) {
    const auto first = next;
    next += 1 + assignment.rivals_size();
    if (is_revoked(assignment.lease())) continue;
    gives_up_ = [&is_revoked, &assignment] { return is_revoked(assignment.lease()); };
    gave_up_ = false;
    std::vector<v1::MeasureResult> results = MeasureBuilt(assignment, {first, next});
    if (gave_up_) continue;
    for (auto build = first; build != next; ++build) {
      const auto place = static_cast<size_t>(build - first);
      const bool good = place < results.size() && results[place].status() == v1::MEASURE_STATUS_OK;
      kept_.Measured(requests[static_cast<size_t>(build - builds.begin())], "", *build, good);
    }
    done(assignment, std::move(results));
  }
  for (const BuildOutcome& build : builds) {
    if (!build.built.library().empty()) RemoveFile(build.built.library());
  }
}

v1::BuildRequest CpuMeasurer::BuildOf(const v1::Assignment& assignment, const std::string& trace) const {
  v1::BuildRequest request;
  request.set_workload(assignment.workload());
  request.set_target(assignment.target());
  request.set_trace(trace);
  request.set_directory(scratch_.path());
  return request;
}

std::vector<BuildOutcome> CpuMeasurer::Build(const std::vector<v1::BuildRequest>& requests,
                                             const std::function<bool()>& is_wanted) {
  std::vector<BuildOutcome> outcomes(requests.size());
  std::vector<v1::BuildRequest> missing;
  std::vector<size_t> places;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (std::optional<BuildOutcome> kept = kept_.Find(requests[i])) {
      outcomes[i] = *std::move(kept);
    } else {
      missing.push_back(requests[i]);
      places.push_back(i);
    }
  }
  std::vector<BuildOutcome> built = builders_.BuildAll(missing, is_wanted);
  for (size_t i = 0; i < built.size(); ++i) outcomes[places[i]] = std::move(built[i]);
  return outcomes;
}

std::vector<v1::MeasureResult> CpuMeasurer::MeasureBuilt(const v1::Assignment& assignment,
                                                         const std::vector<BuildOutcome>& builds) {
  const Lane lane{
      [&](const auto& libraries, v1::MeasureResult* failure) { return Run(assignment, libraries, failure); },
      [&](const std::string& library, double seconds, v1::MeasureResult* failure) {
        return Prove(assignment, library, seconds, failure);
      }};
  std::vector<v1::MeasureResult> results = book_.Make(assignment, builds, lane);
  for (v1::MeasureResult& result : results) {
    *result.mutable_device() = device_;
    result.mutable_device()->set_clock_mhz(CpuClockMhz());  // as the run left it
  }
  return results;
}

std::optional<v1::RunnerResponse> CpuMeasurer::Run(const v1::Assignment& assignment,
                                                   const std::vector<std::string>& libraries,
                                                   v1::MeasureResult* failure) {
  const absl::StatusOr<std::string> folder = PreparedCase(assignment);
  if (!folder.ok()) {
    FailWithout(folder.status(), failure);
    return std::nullopt;
  }
  const bool cold = assignment.protocol() == v1::TIMING_PROTOCOL_COLD;
  const bool in_turn = libraries.size() > 1;
  const double best = assignment.best_seconds();
  const double candidates = static_cast<double>(libraries.size());
  const double budget = (cold ? options_.cold_timing_seconds : options_.timing_seconds) *
                        (in_turn ? kTurnsShare * candidates : 1);
  const int threads = ThreadsOf(assignment.target());
  v1::RunnerRequest request;
  v1::RunRequest& run = *request.mutable_run();
  run.set_workload(assignment.workload());
  run.set_library(libraries[0]);
  run.mutable_rivals()->Add(libraries.begin() + 1, libraries.end());
  run.set_case_directory(*folder);
  run.set_threads(threads);
  run.set_protocol(assignment.protocol());
  run.set_best_seconds(best);
  run.set_budget_seconds(budget);
  run.set_usual_baseline_seconds(baselines_.Usual());
  run.set_flush_bytes(flush_bytes_);
  // Candidates in turn show each other how slow a moment is; with cold caches a sample takes too long.
  const bool is_paced = !in_turn && !cold;
  const double most = candidates * options_.run_seconds;
  const double limit =
      best > 0 ? std::min(most, candidates * (kStartSeconds + kTimeLimitFactor * best) + budget) : most;

  // The inputs of a first trial take a while. Others may have measured it since, when the worker was stopped.
  if (gives_up_()) {
    FailWithout(GiveUp(), failure);
    return std::nullopt;
  }
  Ending ending;
  const HostLock alone(HostLock::Mode::kTiming, kCpuLock, gives_up_);
  if (alone.gave_up()) {
    FailWithout(GiveUp(), failure);
    return std::nullopt;
  }
  if (is_paced) pacers_.SetTo(assignment, &run);
  absl::StatusOr<v1::RunnerResponse> response = CallRunner(request, threads, limit, &ending);
  if (is_paced && response.ok() && LeadsClearly(*response, best)) {
    absl::StatusOr<v1::RunnerResponse> again = CallRunner(request, threads, limit, &ending);
    response = again.ok() ? Doubted(*std::move(response), *std::move(again)) : std::move(again);
  }
  if (!run.pacer().empty()) RemoveFile(run.pacer());
  if (!response.ok()) {
    Fail(ending.status, ending.error, failure);
    return std::nullopt;
  }
  baselines_.Add(response->timing().baseline_seconds());
  if (is_paced && response->status() == v1::MEASURE_STATUS_OK)
    pacers_.Learn(assignment, BuildOf(assignment, assignment.trace()), response->timing().seconds());
  return *std::move(response);
}

std::optional<v1::RunnerResponse> CpuMeasurer::Prove(const v1::Assignment& assignment,
                                                     const std::string& library, double seconds,
                                                     v1::MeasureResult* failure) {
  const absl::StatusOr<std::string> folder = PreparedCase(assignment);
  if (!folder.ok()) {
    FailWithout(folder.status(), failure);
    return std::nullopt;
  }
  const int threads = ThreadsOf(assignment.target());
  v1::RunnerRequest request;
  v1::ProveRequest& prove = *request.mutable_prove();
  prove.set_workload(assignment.workload());
  prove.set_library(library);
  prove.set_case_directory(*folder);
  prove.set_threads(threads);
  prove.set_seconds(seconds);
  prove.set_budget_seconds(options_.proof_seconds);
  const double limit =
      kStartSeconds + options_.proof_seconds + kProvenLaunches * kStrained * threads * seconds;
  Ending ending;
  const HostLock alone(HostLock::Mode::kTiming, kCpuLock, gives_up_);
  if (alone.gave_up()) {
    FailWithout(GiveUp(), failure);
    return std::nullopt;
  }
  absl::StatusOr<v1::RunnerResponse> response = CallRunner(request, threads, limit, &ending);
  if (response.ok()) return *std::move(response);
  Fail(ending.status, ending.error, failure);
  return std::nullopt;
}

absl::StatusOr<v1::DeviceConstants> CpuMeasurer::MeasureConstants(int threads,
                                                                  const std::function<bool()>& gives_up) {
  v1::RunnerRequest request;
  request.mutable_constants()->set_threads(threads);
  Ending ending;
  const HostLock alone(HostLock::Mode::kTiming, kCpuLock, gives_up);
  if (alone.gave_up()) return absl::CancelledError("the worker is stopping");
  absl::StatusOr<v1::RunnerResponse> response =
      CallRunner(request, threads, options_.constants_seconds, &ending);
  MYCC_RETURN_IF_ERROR(response.status());
  if (response->status() != v1::MEASURE_STATUS_OK) return ErrorOf({response->status(), response->error()});
  return std::move(*response->mutable_constants());
}

void CpuMeasurer::MakeRunner(int threads) {
  if (runner_ != nullptr && runner_threads_ == threads) return;
  // OpenMP reads its environment when a program starts. Threads are pinned, each to a core of its own as
  // far as there are enough.
  runner_ = std::make_unique<ForkServer>(
      kRunCommand,
      std::vector<std::string>{absl::StrCat("OMP_NUM_THREADS=", threads), "OMP_PROC_BIND=spread",
                               "OMP_PLACES=threads", "OMP_DYNAMIC=false"},
      runner_confinement_);
  runner_threads_ = threads;
}

absl::StatusOr<v1::RunnerResponse> CpuMeasurer::CallRunner(const v1::RunnerRequest& request, int threads,
                                                           double wall_seconds, Ending* ending) {
  MakeRunner(threads);
  v1::ForkRequest call;
  call.set_payload(request.SerializeAsString());
  call.set_wall_seconds(wall_seconds);
  call.set_cpu_seconds((threads + 2) * wall_seconds);  // a neighbour's among them
  call.set_address_space_bytes(options_.run_address_space_bytes);
  call.set_file_bytes(options_.run_address_space_bytes);  // it reads them as memory
  call.set_only_reads(!request.has_prepare());
  const absl::StatusOr<v1::ForkReply> reply = runner_->Call(call);
  if (!reply.ok()) {
    *ending = EndingOf(Phase::kRun, reply.status());
    return absl::UnavailableError(ending->error);
  }
  v1::RunnerResponse response;
  if (reply->answered() && response.ParseFromString(reply->payload())) return response;
  *ending = EndingOf(Phase::kRun, *reply, wall_seconds);
  return absl::AbortedError(ending->error);
}

absl::StatusOr<std::string> CpuMeasurer::PreparedCase(const v1::Assignment& assignment) {
  const std::string folder = absl::StrCat(
      scratch_.path(), "/case-", Sha256Hex(absl::StrCat(assignment.seed(), "\n", assignment.workload())));
  const auto known = cases_.find(folder);
  if (known != cases_.end()) {
    MYCC_RETURN_IF_ERROR(known->second);
    return folder;
  }
  if (const absl::Status made = MakeFolder(folder); !made.ok())
    return absl::FailedPreconditionError(made.message());
  const absl::Status prepared = PrepareCase(assignment, folder);
  // Any other failure would come again.
  if (!IsPassingFailure(prepared)) {
    cases_[folder] = prepared;
    case_order_.push_back(folder);
    ForgetOldCases();
  }
  MYCC_RETURN_IF_ERROR(prepared);
  return folder;
}

absl::Status CpuMeasurer::PrepareCase(const v1::Assignment& assignment, const std::string& folder) {
  MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(assignment.workload(), "workload"));
  v1::RunnerRequest request;
  v1::PrepareRequest& prepare = *request.mutable_prepare();
  prepare.set_workload(assignment.workload());
  prepare.set_seed(assignment.seed());
  prepare.set_directory(folder);
  if (CountFlops(workload) <= options_.max_reference_flops) {
    v1::BuildRequest build;
    build.set_workload(assignment.workload());
    build.set_target(assignment.target());
    build.set_directory(reference_folder_);
    const BuildOutcome built = builders_.BuildAll({build}, [this] { return !gives_up_(); })[0];
    if (gives_up_()) return GiveUp();
    if (IsInfrastructureFailure(built.ending.status)) return ErrorOf(built.ending);
    // A reference that cannot be built is done without.
    if (built.ok()) {
      prepare.set_library(built.built.library());
      MarkUsed(prepare.library());
      TrimCache(reference_folder_, options_.max_cache_bytes);
    }
  }
  Ending ending;
  const HostLock quiet_for_others(HostLock::Mode::kWorking, kCpuLock, gives_up_);
  if (quiet_for_others.gave_up()) return GiveUp();
  absl::StatusOr<v1::RunnerResponse> response = absl::UnknownError("");
  while (true) {
    response = CallRunner(request, ThreadsOf(assignment.target()), options_.prepare_seconds, &ending);
    if (response.ok()) break;
    if (IsInfrastructureFailure(ending.status) || prepare.library().empty()) return ErrorOf(ending);
    prepare.clear_library();  // one that crashes or takes too long is done without as well
  }
  if (response->status() == v1::MEASURE_STATUS_OK) return absl::OkStatus();
  return ErrorOf({response->status(), response->error()});
}

absl::Status CpuMeasurer::GiveUp() {
  gave_up_ = true;
  return ErrorOf({v1::MEASURE_STATUS_WORKER_UNFIT, "the trial was not wanted any more"});
}

void CpuMeasurer::ForgetOldCases() {
  int64_t bytes = 0;
  for (const std::string& folder : case_order_) bytes += FolderBytes(folder);
  std::error_code ignored;
  while (case_order_.size() > 1 && bytes > options_.max_case_bytes) {
    bytes -= FolderBytes(case_order_.front());
    std::filesystem::remove_all(case_order_.front(), ignored);
    cases_.erase(case_order_.front());
    case_order_.pop_front();
  }
}

}  // namespace mycc
