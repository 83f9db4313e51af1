#include "server/dispatcher.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/names.h"
#include "proto/reproduction.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

constexpr double kHeartbeatsALease = 3;
constexpr double kSilentLeases = 3;  // then the worker is forgotten
// Generations that share their random inputs: fresh enough, and the reference is not computed for every one.
constexpr uint32_t kGenerationsASeed = 8;
constexpr char kBaselineKernel[] = "worker";  // the worker's own; its timer version and it change together

uint64_t InputSeed(uint64_t job_seed, const TrialId& id) {
  uint64_t mixed = job_seed + 0x9e3779b97f4a7c15u * (id.task + 1) +
                   0xbf58476d1ce4e5b9u * (id.generation / kGenerationsASeed);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  return mixed ^ (mixed >> 31);
}

v1::LeaseId LeaseOf(const Grant& grant) {
  v1::LeaseId lease;
  lease.set_trial(grant.trial.name);
  lease.set_attempt(grant.trial.attempt);
  return lease;
}

// Each goes back to the head of its line: in this order they stand there as before.
std::vector<Grant> LastFirst(std::vector<Grant> grants) {
  std::reverse(grants.begin(), grants.end());
  return grants;
}

// What happened to a worker's host that can have ended the worker, in words; empty: nothing that is known of.
std::string AccidentBetween(const v1::HostState& before, const v1::HostState& now) {
  if (before.boot() != now.boot()) return ", as was its host";
  if (before.memory_kills() != now.memory_kills()) return " after its host had run out of memory";
  return "";
}

bool IsRound(const Grant& grant) { return !grant.trial.rivals.empty(); }

// A worker's words are kept as text, whatever they are; how its times rank is not its to say.
v1::MeasureResult Mended(v1::MeasureResult result) {
  if (result.has_timing()) {
    result.mutable_timing()->clear_final_round();
    result.mutable_timing()->clear_rank_seconds();
  }
  result.set_error(ToUtf8(result.error()));
  result.set_reproduction(ToUtf8(result.reproduction()));
  return result;
}

}  // namespace

Dispatcher::Dispatcher(DispatcherOptions options, TuningLog* log, LeaseQueue* queue, JobBoard* board,
                       const TimeSource* time, WriteExecutor write)
    : options_(options),
      log_(log),
      store_(log),
      baselines_(log),
      queue_(queue),
      board_(board),
      time_(time),
      write_(std::move(write)) {}

absl::StatusOr<WorkerTable::Session*> Dispatcher::Hear(const std::string& session) {
  MYCC_ASSIGN_OR_RETURN(WorkerTable::Session* const found, workers_.Hear(session, time_->Seconds()));
  queue_->Renew(session, time_->Seconds());
  return found;
}

absl::StatusOr<v1::RegisterResponse> Dispatcher::Register(const v1::RegisterRequest& request) {
  std::optional<WorkerTable::Session> replaced;
  const double now = time_->Seconds();
  MYCC_ASSIGN_OR_RETURN(WorkerTable::Session* const session,
                        workers_.Register(request, now, &replaced, [this](const v1::DeviceOffer& offer) {
                          return UsualBaseline(offer);
                        }));
  v1::RegisterResponse response;
  response.set_session(session->id);
  response.set_lease_seconds(options_.lease_seconds);
  response.set_heartbeat_seconds(options_.lease_seconds / kHeartbeatsALease);
  for (const v1::LeaseId& held : request.held()) {
    if (!queue_->Rebind(held.trial(), held.attempt(), session->id, now)) *response.add_lost() = held;
  }
  LoseAllOf(request.worker(), request.host(), replaced);
  return response;
}

void Dispatcher::LoseAllOf(const std::string& worker, const v1::HostState& host,
                           const std::optional<WorkerTable::Session>& replaced) {
  for (const Grant& grant : LastFirst(queue_->HeldBy(absl::StrCat(kAdoptedHolder, worker))))
    ReturnOrLose(grant, worker, "");
  if (!replaced) return;
  const std::string accident = AccidentBetween(replaced->host, host);
  for (const Grant& grant : LastFirst(queue_->HeldBy(replaced->id))) ReturnOrLose(grant, worker, accident);
}

// A candidate runs in a process of its own, so a worker that dies on a healthy host was killed by somebody
// else.
void Dispatcher::ReturnOrLose(const Grant& grant, const std::string& worker, const std::string& accident) {
  if (accident.empty() && grant.trial.attempt < options_.max_attempts) {
    ReturnUntouched(grant);
  } else {
    Lose(grant, v1::MEASURE_STATUS_WORKER_LOST,
         absl::StrCat("worker ", worker, " was started again", accident));
  }
}

absl::StatusOr<v1::LeaseResponse> Dispatcher::Lease(const v1::LeaseRequest& request) {
  MYCC_ASSIGN_OR_RETURN(WorkerTable::Session* const session, Hear(request.session()));
  const auto device = session->devices.find(request.device());
  if (device == session->devices.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", session->worker, " has no device ", request.device()));
  }
  const double now = time_->Seconds();
  const Target& target = device->second.target;
  std::string why;
  const auto fits = [&](const std::string& job, const std::string& code) {
    const absl::StatusOr<Target> parsed = ParseTarget(code);
    return board_->Leasable(job) != nullptr && parsed.ok() && IsMeasurableOn(*parsed, target, &why);
  };
  const int wanted = static_cast<int>(std::min(request.max_trials(), options_.max_lease));
  v1::LeaseResponse response;
  if (queue_->waiting() > 0) {
    const std::vector<Grant> grants =
        queue_->Lease(session->id, workers_.Allowance(&device->second, wanted, now), now, fits);
    std::vector<std::string> names;
    for (const Grant& grant : grants) {
      if (!IsRound(grant)) names.push_back(grant.trial.name);
    }
    if (!names.empty()) {
      const absl::Status leased = store_.LeaseTrials(names, session->worker).status();
      if (!leased.ok()) {
        for (auto grant = grants.rbegin(); grant != grants.rend(); ++grant) queue_->TakeBack(*grant);
        return leased;
      }
    }
    for (const Grant& grant : grants)
      *response.add_assignments() = AssignmentOf(grant, *board_->Leasable(grant.trial.job));
  }
  *response.mutable_instructions() = workers_.TakeInstructions(session);
  return response;
}

v1::Assignment Dispatcher::AssignmentOf(const Grant& grant, const ActiveJob& job) const {
  v1::Assignment assignment;
  *assignment.mutable_lease() = LeaseOf(grant);
  const PlannedTask& task = job.plan().tasks[grant.trial.task];
  assignment.set_workload(task.key.workload);
  assignment.set_target(task.key.target);
  assignment.set_trace(grant.trial.trace);
  assignment.set_protocol(task.protocol);
  assignment.set_best_seconds(job.best_seconds(grant.trial.task));
  assignment.mutable_rivals()->Add(grant.trial.rivals.begin(), grant.trial.rivals.end());
  absl::StatusOr<TrialId> id = ParseTrialName(grant.trial.name);
  // The inputs of the last generation, which workers have at hand.
  if (IsRound(grant)) id = TrialId{job.id(), grant.trial.task, job.last_generation(grant.trial.task)};
  if (id.ok()) assignment.set_seed(InputSeed(job.plan().spec.seed(), *id));
  return assignment;
}

// A report counts under a current lease. One of a job that has ended meanwhile counts as well: the log
// decides by its attempt, and keeps a result that was paid for.
bool Dispatcher::IsCurrent(const v1::Report& report) const {
  if (queue_->Find(report.lease().trial(), report.lease().attempt()) != nullptr) return true;
  const absl::StatusOr<TrialId> id = ParseTrialName(report.lease().trial());
  return id.ok() && !board_->IsRunning(id->job) && !IsInfrastructureFailure(report.result().status());
}

std::vector<absl::StatusOr<v1::ReportResponse>> Dispatcher::Report(
    const std::vector<v1::ReportRequest>& requests) {
  std::vector<absl::StatusOr<v1::ReportResponse>> answers(requests.size(), v1::ReportResponse());
  std::vector<Accepted> accepted;
  std::vector<FinishedTrial> finished;
  std::vector<HeldRound> rounds;
  std::set<std::string> seen;
  for (size_t i = 0; i < requests.size(); ++i) {
    const absl::StatusOr<WorkerTable::Session*> session = Hear(requests[i].session());
    if (!session.ok()) {
      answers[i] = session.status();
      continue;
    }
    for (const v1::Report& report : requests[i].reports()) {
      const v1::LeaseId& lease = report.lease();
      if (!IsCurrent(report) || !seen.insert(lease.trial()).second) {
        *answers[i]->add_ignored() = lease;
      } else if (IsInfrastructureFailure(report.result().status())) {
        workers_.Judge(*session, report.result().device().device(), report.result(), time_->Seconds());
        const std::string evidence =
            absl::StrCat("worker ", (*session)->worker, ": ", ToUtf8(report.result().error()));
        Lose(*queue_->Find(lease.trial(), lease.attempt()), report.result().status(), evidence);
      } else if (const Grant* grant = queue_->Find(lease.trial(), lease.attempt());
                 grant != nullptr && IsRound(*grant)) {
        rounds.push_back({*session, i, grant->trial.job, &report});
      } else {
        accepted.push_back({*session, i, lease});
        finished.push_back({lease.trial(), lease.attempt(), Mended(report.result())});
      }
    }
  }
  const auto recorded = store_.FinishTrials(finished);
  for (size_t k = 0; k < accepted.size(); ++k) {
    absl::StatusOr<v1::ReportResponse>& answer = answers[accepted[k].request];
    if (!recorded.ok()) {
      answer = recorded.status();
    } else if (answer.ok()) {
      Settle(accepted[k], std::move(finished[k]), (*recorded)[k].status(), &*answer);
    }
  }
  for (const HeldRound& round : rounds) {
    absl::StatusOr<v1::ReportResponse>& answer = answers[round.request];
    if (!answer.ok()) continue;  // the worker reports again
    const absl::Status settled = SettleRound(round);
    if (!settled.ok()) answer = settled;
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    WorkerTable::Session* session = workers_.Find(requests[i].session());
    if (answers[i].ok() && session != nullptr)
      *answers[i]->mutable_instructions() = workers_.TakeInstructions(session);
  }
  return answers;
}

absl::Status Dispatcher::SettleRound(const HeldRound& held) {
  const v1::LeaseId& lease = held.report->lease();
  std::vector<v1::MeasureResult> results = {Mended(held.report->result())};
  for (const v1::MeasureResult& rival : held.report->rivals()) results.push_back(Mended(rival));
  MYCC_RETURN_IF_ERROR(board_->FinishRound(held.job, lease.trial(), results));
  workers_.Judge(held.session, results[0].device().device(), results[0], time_->Seconds());
  queue_->Finish(lease.trial(), lease.attempt());
  return absl::OkStatus();
}

void Dispatcher::Settle(const Accepted& accepted, FinishedTrial finished, absl::Status recorded,
                        v1::ReportResponse* answer) {
  if (absl::IsInvalidArgument(recorded)) {
    // A result that cannot be kept still ends the trial, with the reason in its place.
    v1::MeasureResult unfit;
    unfit.set_status(v1::MEASURE_STATUS_RUN_ERROR);
    unfit.set_error(absl::StrCat("the result of worker ", accepted.session->worker,
                                 " was refused: ", recorded.message()));
    unfit.mutable_device()->set_worker(ToUtf8(accepted.session->worker));
    finished.result = std::move(unfit);
    const auto again = store_.FinishTrials({&finished, 1});
    recorded = again.ok() ? (*again)[0].status() : again.status();
  }
  if (!recorded.ok()) {
    *answer->add_ignored() = accepted.lease;
    return;
  }
  workers_.Judge(accepted.session, finished.result.device().device(), finished.result, time_->Seconds());
  if (!queue_->Finish(accepted.lease.trial(), accepted.lease.attempt())) return;  // its job has ended
  const absl::StatusOr<TrialId> id = ParseTrialName(accepted.lease.trial());
  if (id.ok()) board_->OnFinished(*id, finished.result);
}

absl::StatusOr<v1::HeartbeatResponse> Dispatcher::Heartbeat(const v1::HeartbeatRequest& request) {
  MYCC_ASSIGN_OR_RETURN(WorkerTable::Session* const session, Hear(request.session()));
  v1::HeartbeatResponse response;
  *response.mutable_instructions() = workers_.TakeInstructions(session);
  return response;
}

absl::StatusOr<v1::LeaveResponse> Dispatcher::Leave(const v1::LeaveRequest& request) {
  MYCC_ASSIGN_OR_RETURN(WorkerTable::Session* const session, Hear(request.session()));
  for (const Grant& grant : LastFirst(queue_->HeldBy(session->id))) ReturnUntouched(grant);
  SaveBaselines(*session);
  workers_.Remove(session->id);
  return v1::LeaveResponse();
}

void Dispatcher::ReturnUntouched(const Grant& grant) {
  LostAttempt lost{.trial = grant.trial.name, .attempt = grant.trial.attempt};
  if (!IsRound(grant) && !store_.RequeueTrial(lost).ok()) return;  // the lease runs out, and Tick tries again
  queue_->Return(grant.trial.name, grant.trial.attempt, /*blamed=*/false);
}

void Dispatcher::Lose(const Grant& grant, v1::MeasureStatus status, const std::string& evidence) {
  if (grant.trial.losses + 1 >= options_.max_losses) {
    Quarantine(grant, status, evidence);
    return;
  }
  LostAttempt lost{
      .trial = grant.trial.name, .attempt = grant.trial.attempt, .status = status, .evidence = evidence};
  if (!IsRound(grant) && !store_.RequeueTrial(lost).ok()) return;  // as above
  queue_->Return(grant.trial.name, grant.trial.attempt, /*blamed=*/true);
}

// The trial ends without a word on the candidate: what took the workers is not known, and no later
// measurement of it is spoken against.
void Dispatcher::Quarantine(const Grant& grant, v1::MeasureStatus status, const std::string& evidence) {
  std::string all =
      absl::StrCat("quarantined: ", grant.trial.losses + 1, " workers were lost while they measured it");
  const absl::StatusOr<std::vector<LostAttempt>> before = store_.LostAttempts(grant.trial.name);
  if (before.ok()) {
    for (const LostAttempt& lost : *before)
      absl::StrAppend(&all, "; attempt ", lost.attempt, ": ", lost.evidence);
  }
  absl::StrAppend(&all, "; attempt ", grant.trial.attempt, ": ", evidence);
  if (IsRound(grant)) {
    const QueuedTrial round = grant.trial;
    queue_->Finish(round.name, round.attempt);
    board_->GiveUpRound(round.job, round.name, all);
    return;
  }
  const ActiveJob* job = board_->Leasable(grant.trial.job);
  FinishedTrial finished{.trial = grant.trial.name, .attempt = grant.trial.attempt};
  finished.result.set_status(status);
  finished.result.set_error(all);
  if (job != nullptr) {
    const v1::Assignment assignment = AssignmentOf(grant, *job);
    finished.result.mutable_timing()->set_protocol(assignment.protocol());
    finished.result.set_reproduction(ReproductionOf(assignment));
  }
  const auto recorded = store_.FinishTrials({&finished, 1});
  if (!recorded.ok() || !(*recorded)[0].ok()) return;  // as above
  const absl::StatusOr<TrialId> id = ParseTrialName(grant.trial.name);
  queue_->Finish(grant.trial.name, grant.trial.attempt);
  if (id.ok()) board_->OnFinished(*id, finished.result);
}

void Dispatcher::Tick() {
  const double now = time_->Seconds();
  for (const Grant& grant : LastFirst(queue_->Overdue(now))) {
    WorkerTable::Session* const holder = workers_.Find(grant.holder);
    if (holder == nullptr) {
      ReturnUntouched(grant);  // the worker did not come back after a restart of the server, which says
                               // nothing about the candidate
      continue;
    }
    Lose(grant, v1::MEASURE_STATUS_WORKER_LOST,
         absl::StrCat("the lease of worker ", holder->worker, " ran out"));
    holder->revoked.push_back(LeaseOf(grant));
  }
  for (const WorkerTable::Session& gone : workers_.RemoveSilent(now, kSilentLeases * options_.lease_seconds))
    SaveBaselines(gone);
}

std::vector<v1::DeviceStatus> Dispatcher::Devices() const {
  return workers_.Status(time_->Seconds(),
                         [this](const std::string& session) { return queue_->leased_by(session); });
}

double Dispatcher::UsualBaseline(const v1::DeviceOffer& offer) const {
  double usual = 0;
  const absl::StatusOr<std::vector<Baseline>> known = baselines_.List();
  if (!known.ok()) return 0;
  for (const Baseline& baseline : *known) {
    // Devices of one model on one host are one device, whatever the worker was called.
    const bool same = baseline.device_model == offer.info().model() &&
                      baseline.worker == offer.info().host() && baseline.device == offer.device() &&
                      baseline.kernel == kBaselineKernel;
    if (same) usual = baseline.seconds;
  }
  return usual;
}

void Dispatcher::SaveBaselines(const WorkerTable::Session& session) {
  for (const auto& [name, device] : session.devices) {
    Baseline baseline;
    baseline.worker = device.offer.info().host();
    baseline.device = name;
    baseline.kernel = kBaselineKernel;
    baseline.protocol = v1::TIMING_PROTOCOL_WARM;
    baseline.device_model = device.offer.info().model();
    baseline.seconds = device.baseline.usual_seconds();
    baseline.measured_unix_micros = time_->UnixMicros();
    if (baseline.seconds <= 0 || baseline.worker.empty()) continue;
    (void)baselines_.Save(baseline);  // advice, not state
  }
}

}  // namespace mycc
