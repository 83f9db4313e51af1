#include "server/dispatcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "server/assignment.h"

namespace mycc {
namespace {

constexpr double kHeartbeatsALease = 3;
constexpr double kSilentLeases = 3;           // then the worker is forgotten
constexpr char kBaselineKernel[] = "worker";  // the worker's own; its timer version and it change together

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

// Devices of one model on one host are one device, whatever the worker was called.
std::string DeviceKey(const std::string& host, const std::string& device, const std::string& model) {
  return absl::StrCat(host, "\n", device, "\n", model);
}

}  // namespace

Dispatcher::Dispatcher(DispatcherOptions options, TuningLog* log, LeaseQueue* queue, JobBoard* board,
                       const TimeSource* time, const WriteExecutor& write)
    : options_(options),
      store_(log),
      baselines_(log),
      queue_(queue),
      time_(time),
      write_(write),
      losses_(options.losses, &store_, queue, board, write),
      leasing_(options.leasing, &store_, queue, board, &workers_, &losses_, time, write),
      reports_(&store_, queue, board, &workers_, &losses_, time, write) {}

absl::Status Dispatcher::Start() {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Baseline> known, baselines_.List());
  for (const Baseline& baseline : known) {
    if (baseline.kernel == kBaselineKernel)
      usual_[DeviceKey(baseline.worker, baseline.device, baseline.device_model)] = baseline;
  }
  return absl::OkStatus();
}

absl::StatusOr<WorkerTable::Session*> Dispatcher::Hear(const std::string& session) {
  MYCC_ASSIGN_OR_RETURN(WorkerTable::Session* const found, workers_.Hear(session, time_->Seconds()));
  queue_->RenewAll(session, time_->Seconds());
  return found;
}

void Dispatcher::Register(const v1::RegisterRequest& request, const Reply<v1::RegisterResponse>& reply) {
  reply(RegisterNow(request));
}

absl::StatusOr<v1::RegisterResponse> Dispatcher::RegisterNow(const v1::RegisterRequest& request) {
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
    losses_.ReturnOrLose(grant, worker, "");
  if (!replaced) return;
  const std::string accident = AccidentBetween(replaced->host, host);
  for (const Grant& grant : LastFirst(queue_->HeldBy(replaced->id)))
    losses_.ReturnOrLose(grant, worker, accident);
}

void Dispatcher::Lease(const v1::LeaseRequest& request, IsAlive alive, Reply<v1::LeaseResponse> reply) {
  if (const absl::Status heard = Hear(request.session()).status(); !heard.ok()) {
    reply(heard);
  } else {
    leasing_.Lease(request, std::move(alive), std::move(reply));
  }
}

void Dispatcher::Report(const v1::ReportRequest& request, Reply<v1::ReportResponse> reply) {
  if (const absl::Status heard = Hear(request.session()).status(); !heard.ok()) {
    reply(heard);
  } else {
    reports_.Report(request, std::move(reply));
  }
}

void Dispatcher::Heartbeat(const v1::HeartbeatRequest& request, const Reply<v1::HeartbeatResponse>& reply) {
  const absl::StatusOr<WorkerTable::Session*> session = Hear(request.session());
  if (!session.ok()) {
    reply(session.status());
    return;
  }
  v1::HeartbeatResponse response;
  *response.mutable_instructions() = workers_.TakeInstructions(*session);
  reply(std::move(response));
}

void Dispatcher::Leave(const v1::LeaveRequest& request, const Reply<v1::LeaveResponse>& reply) {
  const absl::StatusOr<WorkerTable::Session*> session = Hear(request.session());
  if (!session.ok()) {
    reply(session.status());
    return;
  }
  for (const Grant& grant : LastFirst(queue_->HeldBy((*session)->id))) losses_.ReturnUntouched(grant);
  SaveBaselines(**session);
  workers_.Remove((*session)->id);
  reply(v1::LeaveResponse());
}

void Dispatcher::Revoke(const std::string& job) {
  for (const Grant& grant : queue_->HeldOf(job)) {
    WorkerTable::Session* const holder = workers_.Find(grant.holder);
    if (holder != nullptr) holder->revoked.push_back(LeaseOf(grant));
  }
  queue_->DropJob(job);
}

void Dispatcher::ReturnUnclaimed(const std::string& job) {
  for (const Grant& grant : LastFirst(queue_->HeldOf(job))) {
    const std::string worker(absl::StripPrefix(grant.holder, kAdoptedHolder));
    if (!options_.workers_return || workers_.Knows(worker)) losses_.ReturnOrLose(grant, worker, "");
  }
}

void Dispatcher::Tick() {
  const double now = time_->Seconds();
  losses_.Retry(now);
  for (const Grant& grant : LastFirst(queue_->Overdue(now))) {
    WorkerTable::Session* const holder = workers_.Find(grant.holder);
    if (holder == nullptr) {
      losses_.ReturnUntouched(grant);  // the worker did not come back after a restart of the server, which
                                       // says nothing about the candidate
      continue;
    }
    losses_.Lose(grant, v1::MEASURE_STATUS_WORKER_LOST,
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
  const auto known = usual_.find(DeviceKey(offer.info().host(), offer.device(), offer.info().model()));
  return known == usual_.end() ? 0 : known->second.seconds;
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
    usual_[DeviceKey(baseline.worker, baseline.device, baseline.device_model)] = baseline;
    // Advice, not state: nobody waits for it.
    write_([store = &baselines_, baseline] { return store->Save(baseline); }, [](const absl::Status&) {});
  }
}

}  // namespace mycc
