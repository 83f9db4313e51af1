// The quotas that a submission meets, and changes of a job's terms.
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/job_state.pb.h"
#include "server/job_admission.h"

namespace mycc {
namespace {

// Changes the terms of a job in the log.
absl::Status ChangeTerms(const v1::UpdateJobRequest& request, JobStore* store) {
  MYCC_ASSIGN_OR_RETURN(const Job job, store->GetJob(request.job()));
  if (job.state != JobState::kRunning)
    return absl::FailedPreconditionError(absl::StrCat("job ", job.id, " has ended"));
  v1::StoredJob stored;
  if (!stored.ParseFromString(job.spec))
    return absl::DataLossError(absl::StrCat("job ", job.id, ": its spec is damaged"));
  if (request.has_priority()) stored.set_priority(request.priority());
  if (request.has_deadline_unix_micros()) stored.set_deadline_unix_micros(request.deadline_unix_micros());
  return store->SetJobSpec(job.id, stored.SerializeAsString());
}

}  // namespace

absl::Status JobAdmission::CheckRoom(const JobRequest& request) const {
  const v1::Quota& quota = owners_->QuotaOf(request.owner);
  const uint32_t waiting = turns_.num_waiting(request.owner);
  if (!quota.has_waiting_jobs() || waiting < quota.waiting_jobs() || turns_.HasRoomFor(request.owner))
    return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      waiting, " jobs of ", request.owner, " are waiting for their turn: the quota waiting_jobs is ",
      quota.waiting_jobs(), "; it is free again when one of them begins or ends"));
}

absl::Status JobAdmission::CheckDeadline(int64_t deadline_unix_micros) const {
  if (deadline_unix_micros == 0 || deadline_unix_micros > owners_->clock().UnixMicros())
    return absl::OkStatus();
  return absl::InvalidArgumentError("the deadline is over; expected a time to come");
}

const JobTerms* JobAdmission::KnownTerms(const std::string& job) const {
  const auto found = running_->find(job);
  return found != running_->end() ? &found->second->terms : turns_.TermsOfWaiting(job);
}

void JobAdmission::Update(const v1::UpdateJobRequest& request, const JobReply& reply) {
  const std::string& job = request.job();
  const auto again = [this, request, reply] { Update(request, reply); };
  if (changes_.Defer(job, again)) return;
  if (turns_.IsBeingTakenUp(job)) return turns_.AfterTakingUp(job, again);
  const JobTerms* const known = KnownTerms(job);
  absl::Status allowed = CheckDeadline(request.deadline_unix_micros());
  if (request.has_priority())
    allowed.Update(owners_->CheckPriority(known == nullptr ? "" : known->owner, request.priority()));
  if (!allowed.ok()) return reply(allowed);
  changes_.Change(
      job, [store = store_, request] { return ChangeTerms(request, store); },
      [this, request, reply](const absl::Status& status) {
        if (!status.ok()) return reply(status);
        // It may have been read before the change, and written again as it was read.
        if (turns_.IsBeingTakenUp(request.job()))
          return turns_.AfterTakingUp(request.job(), [this, request, reply] { Update(request, reply); });
        if (const JobTerms* const before = KnownTerms(request.job()); before != nullptr) {
          JobTerms terms = *before;
          if (request.has_priority()) terms.priority = request.priority();
          if (request.has_deadline_unix_micros()) terms.deadline_unix_micros = request.deadline_unix_micros();
          turns_.SetTerms(request.job(), terms);
          if (running_->contains(request.job())) hooks_.set_terms(request.job(), terms);
        }
        listing_.Show(request.job(), reply);
      });
}

v1::ListOwnersResponse JobAdmission::ListOwners() const {
  std::set<std::string> owners = owners_->Known();
  for (const auto& [id, job] : *running_) owners.insert(job->terms.owner);
  turns_.AddOwners(&owners);
  v1::ListOwnersResponse response;
  for (const std::string& owner : owners) {
    v1::OwnerStatus& status = *response.add_owners();
    status = owners_->StatusOf(owner);
    status.set_running_jobs(turns_.num_running(owner));
    status.set_waiting_jobs(turns_.num_waiting(owner));
  }
  return response;
}

}  // namespace mycc
