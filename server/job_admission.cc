#include "server/job_admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random_word.h"
#include "base/status.h"
#include "proto/job_state.pb.h"
#include "server/listed_job.h"
#include "server/load_job.h"

namespace mycc {
namespace {

constexpr size_t kMostClientBytes = 64;
constexpr size_t kMostNameBytes = 100;

absl::Status CheckClient(const std::string& client) {
  if (client.size() <= kMostClientBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a client is named by ", client.size(), " bytes; expected at most ", kMostClientBytes));
}

// Printed as it is on the terminals of others.
std::string NameForPeople(std::string name) {
  if (name.size() > kMostNameBytes) name.resize(kMostNameBytes);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return name;
}

// False too where the bytes are damaged, which is found when the job is taken up.
bool IsFresh(const Job& job) {
  v1::StoredJob stored;
  return stored.ParseFromString(job.spec) && stored.spec().fresh();
}
bool IsDetached(const Job& job) {
  v1::StoredJob stored;
  return stored.ParseFromString(job.spec) && stored.detached();
}
JobTerms TermsOfSpec(const Job& job) {
  v1::StoredJob stored;
  return stored.ParseFromString(job.spec) ? TermsOf(stored) : JobTerms{.owner = job.owner};
}
// A cancelled job goes on under the terms of the command that continues it; its owner stays.
std::string Continued(const std::string& spec, const JobRequest& request) {
  v1::StoredJob stored;
  if (!stored.ParseFromString(spec)) return spec;
  stored.set_detached(request.detached);
  stored.set_priority(request.priority);
  stored.set_deadline_unix_micros(request.deadline_unix_micros);
  return stored.SerializeAsString();
}
std::string WithDetached(const std::string& spec, bool detached) {
  v1::StoredJob stored;
  if (!stored.ParseFromString(spec)) return spec;
  stored.set_detached(detached);
  return stored.SerializeAsString();
}

// Whether the job can be planned. Nothing is made of a job that would measure foreign records and finds none.
absl::Status CheckSubmitted(const v1::JobSpec& spec, bool has_deadline, const TuningLog& log) {
  if (!IsForeign(spec)) return PlanJob(spec, has_deadline).status();
  MYCC_ASSIGN_OR_RETURN(const v1::JobSpec listed, ListForeign(spec, log));
  return PlanJob(listed, has_deadline).status();
}

}  // namespace

std::string RandomJobId() { return absl::StrCat("j", RandomWord()); }

JobAdmission::JobAdmission(JobAdmissionOptions options, JobStore* store, const TimeSource* time,
                           const Owners* owners, Executors executors, RunningJobs* running,
                           JobProposals* proposals, JobAdmissionHooks hooks)
    : options_(std::move(options)),
      store_(store),
      time_(time),
      owners_(owners),
      executors_(std::move(executors)),
      running_(running),
      hooks_(std::move(hooks)),
      changes_(executors_.write),
      turns_({.max_running = options_.max_running, .retry_seconds = options_.retry_seconds}, store, time,
             owners, executors_, &changes_, running, proposals,
             {hooks_.queue_trials, [this](const std::string& job) { OnEnded(job); }, hooks_.share}),
      listing_(store, running, &turns_, &waiters_, owners, time, executors_) {}

absl::Status JobAdmission::Start() {
  if (!options_.resume_all) return absl::OkStatus();
  constexpr JobState kUnfinished[] = {JobState::kRunning};
  MYCC_ASSIGN_OR_RETURN(const std::vector<Job> unfinished, store_->ListJobs(kUnfinished));
  for (const Job& job : unfinished) turns_.Append(job.id, TermsOfSpec(job));
  turns_.StartWaiting();
  if (!unfinished.empty()) all_heard_at_ = time_->Seconds() + options_.hear_again_seconds;
  return absl::OkStatus();
}

void JobAdmission::Submit(const v1::SubmitJobRequest& request, const JobReply& reply) {
  if (const absl::Status named = CheckClient(request.client()); !named.ok()) return reply(named);
  auto submission = std::make_shared<Submission>();
  submission->request = {.spec = request.spec(),
                         .submission = request.submission(),
                         .detached = request.client().empty(),
                         .owner = NameForPeople(request.owner()),
                         .priority = request.priority(),
                         .deadline_unix_micros = request.deadline_unix_micros()};
  absl::Status allowed = owners_->CheckPriority(submission->request.owner, request.priority());
  allowed.Update(CheckDeadline(request.deadline_unix_micros()));
  if (!allowed.ok()) return reply(allowed);
  submission->digest = DigestOf(request.submission());
  submission->client = request.client();
  // Reading thousands of workloads takes a while; the plan is made again when the job's turn comes.
  ReadLog(
      executors_.read,
      [submission](TuningLog* log) {
        const JobRequest& planned = submission->request;
        return CheckSubmitted(planned.spec, planned.deadline_unix_micros > 0, *log);
      },
      [this, submission, reply](const absl::Status& planned) {
        if (!planned.ok()) return reply(planned);
        Admit(submission, reply);
      });
}

void JobAdmission::Admit(const std::shared_ptr<const Submission>& submission, const JobReply& reply) {
  if (submission->digest.empty()) return Create(submission, reply);
  if (changes_.Defer(submission->digest, [this, submission, reply] { Admit(submission, reply); })) return;
  changes_.Hold(submission->digest);
  ReadLog(
      executors_.read, [submission](TuningLog* log) { return FindJob(*submission, log); },
      [this, submission, reply](absl::StatusOr<std::optional<Job>> known) {
        if (known.ok()) {
          Decide(*known, submission, reply);
        } else {
          reply(known.status());
        }
        changes_.Release(submission->digest);
      });
}

void JobAdmission::Decide(const std::optional<Job>& known,
                          const std::shared_ptr<const Submission>& submission, const JobReply& reply) {
  if (!known) return Create(submission, reply);
  const auto again = [this, submission, reply] { Admit(submission, reply); };
  if (changes_.Defer(known->id, again)) return;
  switch (known->state) {
    case JobState::kRunning:
      if (running_->contains(known->id) || turns_.Contains(known->id))
        return Join(*known, *submission, reply);
      turns_.Enqueue(known->id, TermsOfSpec(*known));
      // Whether it can be continued is known then.
      if (turns_.IsBeingTakenUp(known->id)) return turns_.AfterTakingUp(known->id, again);
      return Join(*known, *submission, reply);
    case JobState::kCancelled: return Reopen(*known, submission, reply);
    case JobState::kDone:
    case JobState::kFailed: return listing_.Show(known->id, reply);
  }
}

absl::StatusOr<std::optional<Job>> JobAdmission::FindJob(const Submission& submission, TuningLog* log) {
  const JobStore store(log);
  MYCC_ASSIGN_OR_RETURN(std::vector<Job> jobs, store.JobsOf(submission.digest));
  // The jobs of older builds are older than all of these.
  std::vector<Job> old;
  for (int n = 1;; ++n) {
    absl::StatusOr<Job> job = store.GetJob(OldJobIdOf(submission.request.submission, n));
    if (absl::IsNotFound(job.status())) break;
    MYCC_RETURN_IF_ERROR(job.status());
    old.push_back(*std::move(job));
  }
  std::move(old.rbegin(), old.rend(), std::back_inserter(jobs));

  // A job that was asked for with --fresh is neither a finished one nor a part of one.
  const bool fresh = submission.request.spec.fresh();
  for (Job& job : jobs) {
    const bool fits =
        fresh ? job.state == JobState::kRunning && IsFresh(job) : job.state != JobState::kFailed;
    if (fits) return std::move(job);
  }
  return std::nullopt;
}

void JobAdmission::Create(const std::shared_ptr<const Submission>& submission, const JobReply& reply) {
  if (static_cast<int>(turns_.num_waiting()) >= options_.max_waiting) {
    return reply(absl::ResourceExhaustedError(
        absl::StrCat(turns_.num_waiting(), " jobs are waiting; expected fewer, try again later")));
  }
  if (const absl::Status room = CheckRoom(submission->request); !room.ok()) return reply(room);
  const std::string id = options_.new_job_id();
  changes_.Change(
      submission->digest.empty() ? id : submission->digest,
      [store = store_,
       made = MakeJob(id, submission->request, static_cast<uint32_t>(options_.generation_size))] {
        return store->CreateJob(made, {});
      },
      [this, id, submission, reply](const absl::Status& status) {
        if (!status.ok()) return reply(status);
        const JobRequest& request = submission->request;
        turns_.Enqueue(id, {.owner = request.owner,
                            .priority = request.priority,
                            .only_when_idle = request.spec.only_when_idle(),
                            .deadline_unix_micros = request.deadline_unix_micros});
        Answer(id, *submission, reply);
      });
}

void JobAdmission::Join(const Job& job, const Submission& submission, const JobReply& reply) {
  if (const JobTrouble* trouble = turns_.TroubleOf(job.id); trouble != nullptr) return reply(trouble->why);
  if (!submission.request.detached || IsDetached(job)) return Answer(job.id, submission, reply);
  changes_.Change(
      job.id,
      [store = store_, id = job.id, spec = WithDetached(job.spec, true)] {
        return store->SetJobSpec(id, spec);
      },
      [this, id = job.id, reply](const absl::Status& status) {
        if (!status.ok()) return reply(status);
        listing_.Show(id, reply);
      });
}

void JobAdmission::Reopen(const Job& job, const std::shared_ptr<const Submission>& submission,
                          const JobReply& reply) {
  if (const absl::Status room = CheckRoom(submission->request); !room.ok()) return reply(room);
  const std::string spec = Continued(job.spec, submission->request);
  Job continued = job;
  continued.spec = spec;
  changes_.Change(
      job.id,
      [store = store_, id = job.id, spec] {
        MYCC_RETURN_IF_ERROR(store->SetJobSpec(id, spec));
        return store->ReopenJob(id);
      },
      [this, id = job.id, terms = TermsOfSpec(continued), submission, reply](const absl::Status& status) {
        if (!status.ok()) return reply(status);
        turns_.Enqueue(id, terms);
        Answer(id, *submission, reply);
      });
}

void JobAdmission::Answer(const std::string& job, const Submission& submission, const JobReply& reply) {
  const absl::Status heard = Renew(job, submission.client, 0);
  if (!heard.ok()) return reply(heard);
  listing_.Show(job, reply);
}

absl::Status JobAdmission::Renew(const std::string& job, const std::string& client, double seconds) {
  MYCC_RETURN_IF_ERROR(CheckClient(client));
  if (client.empty() || (!running_->contains(job) && !turns_.Contains(job))) return absl::OkStatus();
  const double now = time_->Seconds();
  waiters_.Renew(job, client, now + seconds + options_.waiter_seconds, now);
  return absl::OkStatus();
}

void JobAdmission::Cancel(const v1::CancelJobRequest& request, const JobReply& reply) {
  EndCancelled(
      request.job(),
      request.by().empty() ? "cancelled" : absl::StrCat("cancelled by ", NameForPeople(request.by())), reply);
}

void JobAdmission::EndCancelled(const std::string& job, const std::string& why, const JobReply& reply) {
  std::string summary;
  if (const auto found = running_->find(job); found != running_->end()) {
    summary = SummaryOf(listing_.ProgressOf(*found->second, /*with_tasks=*/true), JobState::kCancelled, why);
  }
  changes_.Change(
      job,
      [store = store_, job, why, summary = std::move(summary)] {
        MYCC_RETURN_IF_ERROR(store->SetJobState(job, JobState::kCancelled, why));
        return summary.empty() ? absl::OkStatus() : store->SetSummary(job, summary);
      },
      [this, job, reply](const absl::Status& status) {
        // One that has ended before is shown as it ended.
        if (!status.ok() && !absl::IsFailedPrecondition(status)) return reply(status);
        if (status.ok()) {
          if (auto running = running_->extract(job)) hooks_.discard(std::move(running.mapped()));
          OnEnded(job);
        }
        listing_.Show(job, reply);
      });
}

void JobAdmission::OnEnded(const std::string& job) {
  turns_.Forget(job);
  waiters_.Forget(job);
  turns_.StartWaiting();
}

void JobAdmission::Leave(const v1::LeaveJobRequest& request, const JobReply& reply) {
  if (const absl::Status named = CheckClient(request.client()); !named.ok()) return reply(named);
  waiters_.Leave(request.job(), request.client());
  leaving_.push_back({request.job(), reply});
  CommitLeaving();
}

void JobAdmission::CommitLeaving() {
  if (time_->Seconds() < all_heard_at_) return;
  for (const Leaving& leaving : std::exchange(leaving_, {})) CommitLeaving(leaving);
}

// A job that nobody waits for any more is cancelled, unless it was meant to run alone.
void JobAdmission::CommitLeaving(const Leaving& leaving) {
  ReadLog(
      executors_.read, [job = leaving.job](TuningLog* log) { return JobStore(log).GetJob(job); },
      [this, leaving](const absl::StatusOr<Job>& job) {
        const bool is_abandoned = waiters_.Count(leaving.job, time_->Seconds()) == 0 && job.ok() &&
                                  job->state == JobState::kRunning && !IsDetached(*job);
        if (!is_abandoned) return listing_.Show(leaving.job, leaving.reply);
        EndCancelled(leaving.job, "cancelled: the last command that waited for it was interrupted",
                     leaving.reply);
      });
}

void JobAdmission::Tick() {
  turns_.StartWaiting();
  CommitLeaving();
}

void JobAdmission::RefuseWaiting(const absl::Status& status) {
  for (const Leaving& leaving : std::exchange(leaving_, {})) leaving.reply(status);
}

}  // namespace mycc
