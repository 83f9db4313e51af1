#include "server/leasing.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "server/assignment.h"
#include "server/farm_window.h"

namespace mycc {
namespace {

constexpr double kLookSeconds = 0.1;
// Enough for a device not to wait for its next lease: what is built is measured in a fraction of a second.
constexpr int kMostBuiltTrials = 2;
constexpr size_t kMostPairs = 10000;  // of targets that are remembered

// Devices of one kind can measure the same trials, as long as their workers hold nothing.
std::string KindOf(const v1::DeviceOffer& offer, v1::WorkerRole role) {
  return absl::StrCat(offer.target(), "\n", absl::StrJoin(offer.protocols(), ","), "\n", int{role});
}

absl::Status HungUp() { return absl::CancelledError("the worker hung up"); }

}  // namespace

Leasing::Leasing(LeasingOptions options, JobStore* store, LeaseQueue* queue, JobBoard* board,
                 WorkerTable* workers, Losses* losses, BuildFarm* builds, const LeaseTickets* tickets,
                 const TimeSource* time, WriteExecutor write)
    : options_(options),
      store_(store),
      queue_(queue),
      board_(board),
      workers_(workers),
      losses_(losses),
      builds_(builds),
      tickets_(tickets),
      time_(time),
      write_(std::move(write)) {}

void Leasing::Lease(const v1::LeaseRequest& request, IsAlive alive, Reply<v1::LeaseResponse> reply) {
  const double wait = std::clamp(request.wait_seconds(), 0.0, options_.max_wait_seconds);
  idle_kinds_.clear();
  Call call{request, std::move(alive), std::move(reply), time_->Seconds() + wait};
  if (!Answer(call)) waiting_.push_back(std::move(call));
}

void Leasing::Serve() {
  const double now = time_->Seconds();
  if (waiting_.empty() || (queue_->additions() == additions_seen_ && now < look_at_)) return;
  additions_seen_ = queue_->additions();
  look_at_ = now + kLookSeconds;
  idle_kinds_.clear();
  waiting_.remove_if([this](const Call& call) { return Answer(call); });
}

void Leasing::RefuseWaiting(const absl::Status& status) {
  for (const Call& call : waiting_) call.reply(status);
  waiting_.clear();
}

bool Leasing::Answer(const Call& call) {
  WorkerTable::Session* const session = workers_->Find(call.request.session());
  if (session == nullptr) {
    call.reply(UnknownSession(call.request.session()));
    return true;
  }
  if (!call.alive()) {
    call.reply(HungUp());
    return true;
  }
  if (!session->devices.contains(call.request.device())) {
    call.reply(absl::InvalidArgumentError(
        absl::StrCat("worker ", session->worker, " has no device ", call.request.device())));
    return true;
  }
  auto granting = std::make_shared<Granting>();
  if (queue_->waiting() > 0) granting->grants = Grants(session, call.request);
  if (granting->grants.empty() && session->revoked.empty() && time_->Seconds() < call.until) return false;
  granting->call = call;
  Write(granting);
  return true;
}

std::vector<Grant> Leasing::Grants(WorkerTable::Session* session, const v1::LeaseRequest& request) {
  WorkerTable::Device& device = session->devices.at(request.device());
  const std::string kind = KindOf(device.offer, session->role);
  if (idle_kinds_.contains(kind)) return {};
  std::map<std::pair<std::string, std::string>, bool> known;  // a line is asked for again for each trial
  Asker asker{.holder = session->id,
              .device = request.device(),
              .pool = device.offer.target(),
              .now = time_->Seconds()};
  asker.fits = [&](const std::string& job, const std::string& code) {
    const auto [found, is_new] = known.try_emplace({job, code}, false);
    if (!is_new) return found->second;
    const JobLedger* const ledger = board_->MayLease(job) ? board_->Leasable(job) : nullptr;
    return found->second = ledger != nullptr && IsMeasurable(code, ledger->plan().spec, device);
  };
  asker.may_try = [&](const QueuedWork& work) { return MayTry(session->worker, work); };
  asker.most_built = kMostBuiltTrials;
  asker.may_build = builds_->queue().MayBuild(*session, time_->Seconds());
  const int wanted = ShareOf(static_cast<int>(std::min(request.max_trials(), options_.max_trials)),
                             queue_->waiting() + queue_->leased(), workers_->num_devices());
  const int allowed = device.health.Allowance(wanted, time_->Seconds());
  std::vector<Grant> grants = queue_->Lease(asker, allowed);
  // Others may have a trial that waits apart, or one that this worker holds too many of.
  const bool is_alike = queue_->apart() == 0 && queue_->leased_by(session->id) == 0;
  if (grants.empty() && allowed > 0 && is_alike) idle_kinds_.insert(kind);
  return grants;
}

bool Leasing::IsMeasurable(const std::string& code, const v1::JobSpec& spec,
                           const WorkerTable::Device& device) {
  if (measurable_.size() >= kMostPairs) measurable_.clear();
  const auto [known, is_new] = measurable_.try_emplace({code, device.offer.target()}, std::nullopt);
  if (is_new) {
    const absl::StatusOr<Target> parsed = ParseTarget(code);
    if (parsed.ok() && device.CanMeasure(*parsed, v1::TIMING_PROTOCOL_UNSPECIFIED)) known->second = *parsed;
  }
  return known->second && device.protocols.contains(ProtocolOf(spec, *known->second));
}

// Work is not tried again on a worker where it failed, while somebody else can.
bool Leasing::MayTry(const std::string& worker, const QueuedWork& work) const {
  const double now = time_->Seconds();
  std::vector<std::string> failed_on;
  for (const FailedTry& failed : work.failed_tries) failed_on.push_back(failed.worker);
  if (now >= work.elsewhere_until || std::ranges::find(failed_on, worker) == failed_on.end()) return true;
  const absl::StatusOr<Target> code = ParseTarget(work.target);
  return !code.ok() || !workers_->HasElsewhere(*code, work.protocol, failed_on, now);
}

void Leasing::Write(const std::shared_ptr<Granting>& granting) {
  const std::string& worker = workers_->Find(granting->call.request.session())->worker;
  granting->open = 1;  // this function's, so that the last one is not over too early
  for (const Grant& grant : granting->grants) {
    ++granting->open;
    if (grant.work.is_round()) {
      OnWritten(granting, grant, absl::OkStatus());  // the log knows nothing of it
      continue;
    }
    write_(
        [store = store_, name = grant.work.name, attempt = grant.work.attempt, worker]() -> absl::Status {
          MYCC_ASSIGN_OR_RETURN(const std::vector<uint32_t> attempts, store->LeaseTrials({name}, worker));
          if (attempts[0] == attempt) return absl::OkStatus();
          return absl::InternalError(absl::StrCat("trial ", name, " was leased as attempt ", attempts[0],
                                                  "; expected attempt ", attempt));
        },
        [this, granting, grant](const absl::Status& status) { OnWritten(granting, grant, status); });
  }
  if (--granting->open == 0) Deliver(*granting);
}

void Leasing::OnWritten(const std::shared_ptr<Granting>& granting, const Grant& grant,
                        const absl::Status& status) {
  if (!status.ok()) {
    granting->refusal = status;
    granting->refused.push_back(grant);
  } else if (queue_->Confirm(grant.work.name, grant.work.attempt, time_->Seconds())) {
    granting->written.push_back(grant);
  }
  if (--granting->open == 0) Deliver(*granting);
}

void Leasing::Deliver(const Granting& granting) {
  const Call& call = granting.call;
  // Each goes back to the head of its line: in this order they stand there as before.
  for (auto grant = granting.refused.rbegin(); grant != granting.refused.rend(); ++grant)
    queue_->TakeBack(grant->work.name, grant->work.attempt);
  WorkerTable::Session* const session = workers_->Find(call.request.session());
  if (session == nullptr || !call.alive()) {
    // Nobody hears of these.
    for (auto grant = granting.written.rbegin(); grant != granting.written.rend(); ++grant)
      losses_->Return(*grant);
    call.reply(session == nullptr ? UnknownSession(call.request.session()) : HungUp());
    return;
  }
  if (granting.written.empty() && !granting.refusal.ok()) {
    call.reply(granting.refusal);
    return;
  }
  v1::LeaseResponse response;
  for (const Grant& grant : granting.written) {
    const JobLedger* const ledger = board_->Leasable(grant.work.job);
    if (ledger == nullptr) {
      losses_->Return(grant);  // its job has ended meanwhile
    } else {
      v1::Assignment& assignment = *response.add_assignments();
      assignment = AssignmentOf(grant, *ledger);
      if (grant.work.doubted_builder.empty()) builds_->AddArtifacts(&assignment);
      assignment.mutable_lease()->set_ticket(tickets_->TicketOf(grant.work.name, grant.work.attempt));
    }
  }
  *response.mutable_instructions() = workers_->TakeInstructions(session);
  call.reply(std::move(response));
}

}  // namespace mycc
