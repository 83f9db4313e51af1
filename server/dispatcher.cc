// Finds the session of each call, renews its leases, and passes the call on to leasing, reports or losses.
#include "server/dispatcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "db/server_key.h"
#include "proto/names.h"
#include "proto/utf8.h"
#include "server/assignment.h"
#include "server/trial_events.h"

namespace mycc {
namespace {

constexpr double kHeartbeatsALease = 3;
constexpr double kSilentLeases = 3;       // then the worker is forgotten
constexpr size_t kMostWordsBytes = 4096;  // of a worker about its device, kept with its session

// Each goes back to the head of its line: in this order they stand there as before.
std::vector<Grant> LastFirst(std::vector<Grant> grants) {
  std::ranges::reverse(grants);
  return grants;
}

// The accident of a worker's host that can have ended the worker, in words; empty: none is known.
std::string AccidentBetween(const v1::HostState& before, const v1::HostState& now) {
  if (before.boot() != now.boot()) return ", as was its host";
  if (before.memory_kills() != now.memory_kills()) return " after its host had run out of memory";
  return "";
}

}  // namespace

Dispatcher::Dispatcher(DispatcherOptions options, TuningLog* log, LeaseQueue* queue, JobBoard* board,
                       const TimeSource* time, const WriteExecutor& write, const ReadExecutor& read)
    : options_(std::move(options)),
      log_(log),
      store_(log),
      queue_(queue),
      board_(board),
      time_(time),
      baselines_(log, time, write),
      constants_(log, time, write, options_.log),
      tickets_(""),
      workers_(options_.lease_seconds, options_.log),
      losses_(options_.losses, &store_, queue, board, time, write),
      builds_({.lease_seconds = options_.lease_seconds,
               .folder = log->path() + ".artifacts",
               .most_bytes = options_.most_artifact_bytes,
               .count_refusal = [this](WorkerTable::Session* session,
                                       const std::string& what) { reports_.CountRefusal(session, what); }},
              {&store_, queue, board, &workers_, &tickets_, time, write, read}),
      leasing_(options_.leasing, &store_, queue, board, &workers_, &losses_, &builds_, &tickets_, time,
               write),
      reports_(&store_, queue, board, &workers_, &losses_, &builds_, &tickets_, time, write, options_.log) {}

absl::Status Dispatcher::Start() {
  MYCC_ASSIGN_OR_RETURN(std::string key, ReadServerKey(*log_));
  tickets_ = LeaseTickets(std::move(key));
  // Everything there can be built again.
  const absl::Status known_builds = builds_.Start();
  if (!known_builds.ok() && options_.log)
    options_.log(absl::StrCat("earlier builds are not used: ", known_builds.message()));
  MYCC_RETURN_IF_ERROR(constants_.Start());
  return baselines_.Start();
}

absl::StatusOr<WorkerTable::Session*> Dispatcher::Renew(const std::string& session, const Leases& held) {
  const double now = time_->Seconds();
  MYCC_ASSIGN_OR_RETURN(WorkerTable::Session* const found, workers_.Renew(session, now));
  if (!found->names_what_it_holds) {
    queue_->RenewAll(session, now);
    return found;
  }
  found->revoked.clear();
  if (found->builder) {
    RenewBuilds(found, held);
    return found;
  }
  for (const v1::LeaseId& lease : held) {
    if (IsClaim(lease)) continue;
    const Grant* const grant = queue_->Find(lease.trial(), lease.attempt());
    const bool is_wanted = grant != nullptr && board_->Leasable(grant->work.job) != nullptr;
    if (grant != nullptr && grant->holder == session && !StandstillOf(*found, *grant).empty()) continue;
    const bool is_its_own = queue_->Renew(lease.trial(), lease.attempt(), session, now);
    if (!is_wanted || !is_its_own) found->revoked.push_back(lease);
  }
  return found;
}

void Dispatcher::RenewBuilds(WorkerTable::Session* session, const Leases& held) {
  for (const v1::LeaseId& lease : held) {
    const Grant* const order = builds_.queue().Find(lease);
    const bool is_wanted = order != nullptr && board_->Leasable(order->work.job) != nullptr;
    const bool is_its_own = builds_.queue().Renew(lease, session->id, time_->Seconds());
    if (!is_wanted || !is_its_own) session->revoked.push_back(lease);
  }
}

void Dispatcher::Register(const v1::RegisterRequest& request, const Reply<v1::RegisterResponse>& reply) {
  reply(RegisterNow(request));
}

absl::StatusOr<v1::RegisterResponse> Dispatcher::RegisterNow(const v1::RegisterRequest& request) {
  std::optional<WorkerTable::Session> replaced;
  MYCC_ASSIGN_OR_RETURN(
      WorkerTable::Session* const session,
      workers_.Register(request, time_->Seconds(), &replaced, [this, &request](const v1::DeviceOffer& offer) {
        return baselines_.Usual(request.worker(), offer);
      }));
  v1::RegisterResponse response;
  response.set_session(session->id);
  response.set_lease_seconds(options_.lease_seconds);
  response.set_heartbeat_seconds(options_.lease_seconds / kHeartbeatsALease);
  if (session->builder) {
    for (const v1::LeaseId& lease : request.held()) {
      const bool is_kept =
          tickets_.IsGenuine(lease) && builds_.queue().Rebind(lease, session->id, time_->Seconds());
      if (!is_kept) *response.add_lost() = lease;
    }
  } else {
    Claim(session, request.held(), replaced, response.mutable_lost());
  }
  if (replaced) builds_.queue().ReturnAllOf(replaced->id);
  LoseAllOf(*session, replaced);
  for (std::string& device : constants_.Unmeasured(*session)) response.add_unmeasured(std::move(device));
  Tell(WorkerEvent("worker.registered", session->worker));
  return response;
}

void Dispatcher::Claim(WorkerTable::Session* session, const Leases& held,
                       const std::optional<WorkerTable::Session>& replaced, Leases* lost) {
  std::erase_if(claims_,
                [this](const auto& of_job) { return !board_->admission().IsOnItsWay(of_job.first); });
  for (const v1::LeaseId& lease : held) {
    if (IsClaim(lease)) {
      claims_[ParseTrialName(lease.trial())->job][{lease.trial(), lease.attempt()}] = session->id;
      continue;
    }
    const Grant* const grant = queue_->Find(lease.trial(), lease.attempt());
    // A worker that knows no tickets is known by its session.
    const bool was_its_own =
        replaced && !replaced->names_what_it_holds && grant != nullptr && grant->holder == replaced->id;
    const bool is_genuine = tickets_.IsGenuine(lease);
    const bool may_claim = is_genuine || was_its_own;
    if (may_claim && queue_->Rebind(lease.trial(), lease.attempt(), session->id, time_->Seconds())) continue;
    *lost->Add() = lease;
    if (!is_genuine && !lease.ticket().empty())
      reports_.CountRefusal(session, absl::StrCat("a wrong ticket for a lease of ", lease.trial()));
  }
}

bool Dispatcher::IsClaim(const v1::LeaseId& lease) const {
  const absl::StatusOr<TrialId> id = ParseTrialName(lease.trial());
  return id.ok() && board_->LedgerOf(id->job) == nullptr && board_->admission().IsOnItsWay(id->job) &&
         tickets_.IsGenuine(lease);
}

void Dispatcher::LoseAllOf(const WorkerTable::Session& session,
                           const std::optional<WorkerTable::Session>& replaced) {
  FailedTry failed{session.worker, "", absl::StrCat("worker ", session.worker, " was started again")};
  losses_.HandBack(queue_->HeldBy(absl::StrCat(kAdoptedHolder, session.worker)), failed);
  if (!replaced) return;
  const bool is_same_process = !session.instance.empty() && session.instance == replaced->instance;
  const std::string accident = is_same_process ? "" : AccidentBetween(replaced->host, session.host);
  absl::StrAppend(&failed.what, accident);
  // A candidate runs in a process of its own, so a worker that dies on a healthy host was killed by somebody
  // else.
  if (accident.empty()) {
    losses_.HandBack(queue_->HeldBy(replaced->id), failed);
  } else {
    losses_.LoseAll(queue_->HeldBy(replaced->id), failed);
  }
}

void Dispatcher::Lease(const v1::LeaseRequest& request, IsAlive alive, Reply<v1::LeaseResponse> reply) {
  if (const absl::Status heard = Renew(request.session(), request.held()).status(); !heard.ok()) {
    reply(heard);
  } else {
    leasing_.Lease(
        request, std::move(alive),
        TellingLeases(options_.log, WorkerOf(request.session()), request.device(), std::move(reply)));
  }
}

void Dispatcher::Report(const v1::ReportRequest& request, Reply<v1::ReportResponse> reply) {
  if (const absl::Status heard = Renew(request.session(), request.held()).status(); !heard.ok()) {
    reply(heard);
  } else {
    reports_.Report(request, std::move(reply));
  }
}

void Dispatcher::Heartbeat(const v1::HeartbeatRequest& request, const Reply<v1::HeartbeatResponse>& reply) {
  const absl::StatusOr<WorkerTable::Session*> session = Renew(request.session(), request.held());
  if (!session.ok()) return reply(session.status());
  for (auto& [name, device] : (*session)->devices) device.trouble.clear();
  for (const v1::DeviceTrouble& trouble : request.troubles()) {
    const auto device = (*session)->devices.find(trouble.device());
    if (device != (*session)->devices.end())
      device->second.trouble = ToUtf8(trouble.text().substr(0, kMostWordsBytes));
  }
  TakeReadings(request, *session);
  v1::HeartbeatResponse response;
  *response.mutable_instructions() = workers_.TakeInstructions(*session);
  constants_.Take(
      request, **session,
      [this, &session](const std::string& line) { reports_.CountRefusal(*session, line); },
      [reply, response = std::move(response)] { reply(response); });
}

void Dispatcher::TakeReadings(const v1::HeartbeatRequest& request, WorkerTable::Session* session) {
  for (const v1::DeviceReading& reading : request.readings()) {
    const auto device = session->devices.find(reading.device());
    if (device == session->devices.end()) continue;
    device->second.reading = reading;
    device->second.reading.DiscardUnknownFields();
    device->second.reading.set_throttle(ToUtf8(reading.throttle().substr(0, kMostWordsBytes)));
  }
  for (const auto& [name, device] : session->devices) {
    history_.Add({session->worker, name}, {.unix_micros = time_->UnixMicros(),
                                           .baseline_ratio = device.health.baseline().ratio(),
                                           .temperature_celsius = device.reading.temperature_celsius(),
                                           .clock_mhz = static_cast<double>(device.reading.clock_mhz())});
  }
}

std::string Dispatcher::WorkerOf(const std::string& holder) const {
  const WorkerTable::Session* const session = workers_.Find(holder);
  return session == nullptr ? holder : session->worker;
}

void Dispatcher::Leave(const v1::LeaveRequest& request, const Reply<v1::LeaveResponse>& reply) {
  const absl::StatusOr<WorkerTable::Session*> session = Renew(request.session(), {});
  if (!session.ok()) {
    reply(session.status());
    return;
  }
  for (const Grant& grant : LastFirst(queue_->HeldBy((*session)->id))) losses_.Return(grant);
  builds_.queue().ReturnAllOf((*session)->id);
  baselines_.Keep(**session);
  Tell(WorkerEvent("worker.left", (*session)->worker));
  workers_.Remove((*session)->id);
  reply(v1::LeaveResponse());
}

void Dispatcher::LeaseBuilds(const v1::LeaseBuildsRequest& request, IsAlive alive,
                             Reply<v1::LeaseBuildsResponse> reply) {
  if (const absl::Status heard = Renew(request.session(), request.held()).status(); !heard.ok()) {
    reply(heard);
  } else {
    builds_.Lease(request, std::move(alive), std::move(reply));
  }
}

void Dispatcher::ReportBuilds(const v1::ReportBuildsRequest& request, Reply<v1::ReportBuildsResponse> reply) {
  if (const absl::Status heard = Renew(request.session(), request.held()).status(); !heard.ok()) {
    reply(heard);
  } else {
    builds_.Report(request, std::move(reply));
  }
}

// Its leases are not renewed: it names none.
void Dispatcher::FetchArtifact(const v1::FetchArtifactRequest& request,
                               Reply<v1::FetchArtifactResponse> reply) {
  if (workers_.Find(request.session()) == nullptr) {
    reply(UnknownSession(request.session()));
  } else {
    builds_.Fetch(request, std::move(reply));
  }
}

void Dispatcher::Serve() {
  leasing_.Serve();
  builds_.Serve();
}

void Dispatcher::RefuseWaiting(const absl::Status& status) {
  leasing_.RefuseWaiting(status);
  builds_.RefuseWaiting(status);
}

void Dispatcher::Revoke(const std::string& job) {
  builds_.queue().Revoke(job);
  for (const Grant& grant : queue_->HeldOf(job)) {
    WorkerTable::Session* const holder = workers_.Find(grant.holder);
    if (holder != nullptr) holder->revoked.push_back(LeaseOf(grant));
  }
  queue_->DropJob(job);
}

void Dispatcher::OnAdopted(const std::string& job) {
  const auto claims = claims_.extract(job);
  if (!claims.empty()) {
    for (const auto& [lease, session] : claims.mapped()) {
      if (workers_.Find(session) != nullptr)
        queue_->Rebind(lease.first, lease.second, session, time_->Seconds());
    }
  }
  for (const Grant& grant : LastFirst(queue_->HeldOf(job))) {
    if (!absl::StartsWith(grant.holder, kAdoptedHolder)) continue;
    const std::string worker(absl::StripPrefix(grant.holder, kAdoptedHolder));
    if (options_.workers_return && !workers_.Knows(worker)) continue;
    losses_.HandBack({grant}, {worker, "", absl::StrCat("worker ", worker, " was started again")});
  }
}

void Dispatcher::Tick() {
  const double now = time_->Seconds();
  losses_.Retry();
  builds_.Tick();
  for (const Grant& grant : LastFirst(queue_->Overdue(now))) EndOverdue(grant);
  for (const WorkerTable::Session& gone : workers_.RemoveSilent(now, kSilentLeases * options_.lease_seconds))
    OnGone(gone);
}

void Dispatcher::OnGone(const WorkerTable::Session& session) {
  baselines_.Keep(session);
  Tell(WorkerEvent("worker.silent", session.worker, /*is_warning=*/true));
}

std::string Dispatcher::StandstillOf(const WorkerTable::Session& holder, const Grant& grant) const {
  const auto device = holder.devices.find(grant.device);
  if (device == holder.devices.end() || device->second.trouble.empty()) return "";
  const absl::StatusOr<Target> code = ParseTarget(grant.work.target);
  const bool has_elsewhere =
      code.ok() && workers_.HasElsewhere(*code, grant.work.protocol, {holder.worker}, time_->Seconds());
  return has_elsewhere ? device->second.trouble : "";
}

void Dispatcher::EndOverdue(const Grant& grant) {
  WorkerTable::Session* const holder = workers_.Find(grant.holder);
  Tell(LeaseEvent("lease.expired", LeaseOf(grant), WorkerOf(grant.holder), grant.device));
  if (holder == nullptr) {
    // The worker did not come back after a restart of the server, which says nothing about the candidate.
    losses_.Return(grant);
  } else if (time_->Seconds() >= grant.until) {
    losses_.ReturnElsewhere(grant, {holder->worker, grant.device,
                                    absl::StrCat("worker ", holder->worker,
                                                 " named the lease for half an hour and reported nothing")});
  } else if (const std::string standstill = StandstillOf(*holder, grant); !standstill.empty()) {
    losses_.ReturnElsewhere(
        grant, {holder->worker, grant.device, absl::StrCat("worker ", holder->worker, ": ", standstill)});
  } else if (holder->last_heard > grant.renewed) {
    losses_.HandBack({grant}, {holder->worker, "",
                               absl::StrCat("worker ", holder->worker, " never said that it has the lease")});
  } else {
    // Silent for a lease: it is lost, with all that it holds.
    const std::vector<Grant> held = queue_->HeldBy(holder->id);
    if (!holder->names_what_it_holds)
      for (const Grant& lost : held) holder->revoked.push_back(LeaseOf(lost));
    losses_.LoseAll(held,
                    {holder->worker, "", absl::StrCat("the lease of worker ", holder->worker, " ran out")});
  }
}

std::vector<v1::DeviceStatus> Dispatcher::Devices() const {
  return workers_.Status(time_->Seconds(), [this](const std::string& session) {
    return queue_->leased_by(session) + builds_.queue().leased_by(session);
  });
}

}  // namespace mycc
