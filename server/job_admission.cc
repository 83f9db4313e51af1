#include "server/job_admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random_word.h"
#include "base/status.h"
#include "proto/job_state.pb.h"
#include "server/stored_job.h"

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
std::string Printable(std::string name) {
  if (name.size() > kMostNameBytes) name.resize(kMostNameBytes);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return name;
}

// Errors that the same call may get over later: the log is busy, full, or cannot be read or written now.
bool IsPassing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsPermissionDenied(status) || absl::IsInternal(status);
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
std::string WithDetached(const std::string& spec, bool detached) {
  v1::StoredJob stored;
  if (!stored.ParseFromString(spec)) return spec;
  stored.set_detached(detached);
  return stored.SerializeAsString();
}

}  // namespace

std::string RandomJobId() { return absl::StrCat("j", RandomWord()); }

JobAdmission::JobAdmission(JobAdmissionOptions options, TuningLog* log, JobStore* store, ModelStore* models,
                           const TimeSource* time, WriteExecutor write, RunningJobs* running,
                           JobRounds* rounds, JobAdmissionHooks hooks)
    : options_(std::move(options)),
      log_(log),
      store_(store),
      models_(models),
      time_(time),
      write_(std::move(write)),
      running_(running),
      rounds_(rounds),
      hooks_(std::move(hooks)),
      listing_(log, store, running, &queue_, &waiters_, time) {}

absl::Status JobAdmission::Start() {
  if (!options_.resume_all) return absl::OkStatus();
  constexpr JobState kUnfinished[] = {JobState::kRunning};
  MYCC_ASSIGN_OR_RETURN(const std::vector<Job> unfinished, store_->ListJobs(kUnfinished));
  for (const Job& job : unfinished) queue_.waiting.push_back(job.id);
  if (!unfinished.empty()) all_heard_at_ = time_->Seconds() + options_.hear_again_seconds;
  StartWaiting();
  return absl::OkStatus();
}

void JobAdmission::Submit(const v1::SubmitJobRequest& request, const JobReply& reply) {
  absl::StatusOr<JobPlan> plan = PlanJob(request.spec());
  if (!plan.ok()) return reply(plan.status());
  if (const absl::Status named = CheckClient(request.client()); !named.ok()) return reply(named);
  auto submission = std::make_shared<Submission>();
  submission->request = {*std::move(plan), request.submission(), /*detached=*/request.client().empty()};
  submission->digest = DigestOf(request.submission());
  submission->client = request.client();
  Admit(submission, reply);
}

void JobAdmission::Admit(const std::shared_ptr<const Submission>& submission, const JobReply& reply) {
  const auto again = [this, submission, reply] { Admit(submission, reply); };
  if (Defer(submission->digest, again)) return;
  const absl::StatusOr<std::optional<Job>> known = FindJob(*submission);
  if (!known.ok()) return reply(known.status());
  if (!known->has_value()) return Create(submission, reply);
  const Job& job = **known;
  if (Defer(job.id, again)) return;
  if (job.state == JobState::kRunning && !running_->contains(job.id)) {
    Enqueue(job.id);
    if (Defer(job.id, again)) return;  // it cannot be taken up, which is being written
  }
  switch (job.state) {
    case JobState::kRunning: return Join(job, *submission, reply);
    case JobState::kCancelled: return Reopen(job, submission, reply);
    case JobState::kDone:
    case JobState::kFailed: return reply(Progress(job.id));
  }
}

absl::StatusOr<std::optional<Job>> JobAdmission::FindJob(const Submission& submission) const {
  if (submission.digest.empty()) return std::nullopt;
  MYCC_ASSIGN_OR_RETURN(std::vector<Job> jobs, store_->JobsOf(submission.digest));
  // Those of older builds are older than all of these.
  std::vector<Job> old;
  for (int n = 1;; ++n) {
    absl::StatusOr<Job> job = store_->GetJob(OldJobIdOf(submission.request.submission, n));
    if (absl::IsNotFound(job.status())) break;
    MYCC_RETURN_IF_ERROR(job.status());
    old.push_back(*std::move(job));
  }
  std::move(old.rbegin(), old.rend(), std::back_inserter(jobs));

  // What was asked for with --fresh is neither what is done nor a part of it.
  const bool fresh = submission.request.plan.spec.fresh();
  for (Job& job : jobs) {
    const bool fits =
        fresh ? job.state == JobState::kRunning && IsFresh(job) : job.state != JobState::kFailed;
    if (fits) return std::move(job);
  }
  return std::nullopt;
}

void JobAdmission::Create(const std::shared_ptr<const Submission>& submission, const JobReply& reply) {
  if (static_cast<int>(queue_.waiting.size()) >= options_.max_waiting) {
    return reply(absl::ResourceExhaustedError(
        absl::StrCat(queue_.waiting.size(), " jobs are waiting; expected fewer, try again later")));
  }
  const std::string id = options_.new_job_id();
  absl::StatusOr<NewJob> made =
      MakeJob(id, submission->request, static_cast<uint32_t>(options_.generation_size), *log_, *models_);
  if (!made.ok()) return reply(made.status());
  const bool is_done = made->job.state == JobState::kDone;
  Change(
      submission->digest.empty() ? id : submission->digest,
      [store = store_, made = *std::move(made)] { return store->CreateJob(made.job, made.tasks); },
      [this, id, is_done, submission, reply](const absl::Status& status) {
        if (!status.ok()) return reply(status);
        if (!is_done) Enqueue(id);
        Answer(id, *submission, reply);
      });
}

void JobAdmission::Join(const Job& job, const Submission& submission, const JobReply& reply) {
  if (const JobTrouble* trouble = queue_.TroubleOf(job.id); trouble != nullptr) return reply(trouble->why);
  if (!submission.request.detached || IsDetached(job)) return Answer(job.id, submission, reply);
  Change(
      job.id,
      [store = store_, id = job.id, spec = WithDetached(job.spec, true)] {
        return store->SetJobSpec(id, spec);
      },
      [this, id = job.id, reply](const absl::Status& status) {
        reply(status.ok() ? Progress(id) : absl::StatusOr<v1::JobProgress>(status));
      });
}

void JobAdmission::Reopen(const Job& job, const std::shared_ptr<const Submission>& submission,
                          const JobReply& reply) {
  Change(
      job.id,
      [store = store_, id = job.id, spec = WithDetached(job.spec, submission->request.detached)] {
        MYCC_RETURN_IF_ERROR(store->SetJobSpec(id, spec));
        return store->ReopenJob(id);
      },
      [this, id = job.id, submission, reply](const absl::Status& status) {
        if (!status.ok()) return reply(status);
        Enqueue(id);
        Answer(id, *submission, reply);
      });
}

void JobAdmission::Answer(const std::string& job, const Submission& submission, const JobReply& reply) {
  const absl::Status heard = Hear(job, submission.client, 0);
  reply(heard.ok() ? Progress(job) : absl::StatusOr<v1::JobProgress>(heard));
}

absl::Status JobAdmission::Hear(const std::string& job, const std::string& client, double seconds) {
  MYCC_RETURN_IF_ERROR(CheckClient(client));
  if (client.empty() || (!running_->contains(job) && !queue_.Contains(job))) return absl::OkStatus();
  const double now = time_->Seconds();
  waiters_.Hear(job, client, now + seconds + options_.waiter_seconds, now);
  return absl::OkStatus();
}

void JobAdmission::Cancel(const v1::CancelJobRequest& request, const JobReply& reply) {
  EndCancelled(request.job(),
               request.by().empty() ? "cancelled" : absl::StrCat("cancelled by ", Printable(request.by())),
               reply);
}

void JobAdmission::EndCancelled(const std::string& job, const std::string& why, const JobReply& reply) {
  Change(
      job, [store = store_, job, why] { return store->SetJobState(job, JobState::kCancelled, why); },
      [this, job, reply](const absl::Status& status) {
        // One that has ended before is shown as it ended.
        if (!status.ok() && !absl::IsFailedPrecondition(status)) return reply(status);
        if (status.ok()) {
          if (auto running = running_->extract(job)) hooks_.discard(std::move(running.mapped()));
          OnEnded(job);
        }
        reply(Progress(job));
      });
}

void JobAdmission::OnEnded(const std::string& job) {
  std::erase(queue_.waiting, job);
  queue_.troubles.erase(job);
  waiters_.Forget(job);
  StartWaiting();
}

void JobAdmission::Leave(const v1::LeaveJobRequest& request, const JobReply& reply) {
  if (const absl::Status named = CheckClient(request.client()); !named.ok()) return reply(named);
  waiters_.Leave(request.job(), request.client());
  leaving_.push_back({request.job(), reply});
  SettleLeaving();
}

bool JobAdmission::IsAbandoned(const std::string& job) const {
  if (waiters_.Count(job, time_->Seconds()) > 0) return false;
  const absl::StatusOr<Job> known = store_->GetJob(job);
  return known.ok() && known->state == JobState::kRunning && !IsDetached(*known);
}

void JobAdmission::SettleLeaving() {
  if (time_->Seconds() < all_heard_at_) return;
  for (const Leaving& leaving : std::exchange(leaving_, {})) {
    if (IsAbandoned(leaving.job)) {
      EndCancelled(leaving.job, "cancelled: the last command that waited for it was interrupted",
                   leaving.reply);
    } else {
      leaving.reply(Progress(leaving.job));
    }
  }
}

void JobAdmission::Tick() {
  StartWaiting();
  SettleLeaving();
}

void JobAdmission::RefuseWaiting(const absl::Status& status) {
  for (const Leaving& leaving : std::exchange(leaving_, {})) leaving.reply(status);
}

void JobAdmission::Enqueue(const std::string& job) {
  if (queue_.Contains(job) || queue_.TroubleOf(job) != nullptr) return;
  queue_.waiting.push_back(job);
  StartWaiting();
}

void JobAdmission::StartWaiting() {
  std::vector<std::string> again;  // those that cannot be taken up now keep their turn, and hold up nobody
  while (!queue_.waiting.empty() && static_cast<int>(running_->size()) < options_.max_running) {
    const std::string id = queue_.waiting.front();
    queue_.waiting.pop_front();  // first: a job that ends at once begins the next one
    const JobTrouble* const trouble = queue_.TroubleOf(id);
    if (trouble == nullptr || time_->Seconds() >= trouble->retry_at) {
      const absl::Status begun = TakeUp(id);
      if (begun.ok()) {
        queue_.troubles.erase(id);
        continue;
      }
      KeepTrouble(id, begun);
    }
    if (queue_.TroubleOf(id)->is_passing) again.push_back(id);
  }
  queue_.waiting.insert(queue_.waiting.begin(), again.begin(), again.end());
}

absl::Status JobAdmission::TakeUp(const std::string& id) {
  MYCC_ASSIGN_OR_RETURN(const Job job, store_->GetJob(id));
  if (job.state != JobState::kRunning) return absl::OkStatus();
  MYCC_ASSIGN_OR_RETURN(StoredJobState loaded, LoadJob(*log_, *store_, job));
  auto begun = std::make_unique<RunningJob>(std::move(loaded.job), loaded.elapsed_seconds, time_->Seconds());
  RunningJob* const running = ((*running_)[id] = std::move(begun)).get();
  hooks_.queue_trials(*running->active, loaded.open);
  rounds_->BuildSearch(running, std::move(loaded.rounds));
  return absl::OkStatus();
}

void JobAdmission::KeepTrouble(const std::string& job, const absl::Status& why) {
  const bool is_passing = IsPassing(why);
  queue_.troubles[job] = {why, is_passing, time_->Seconds() + options_.retry_seconds};
  if (is_passing) return;
  Change(
      job,
      [store = store_, job, why] {
        return store->SetJobState(job, JobState::kFailed, std::string(why.message()));
      },
      [this, job](const absl::Status& status) {
        // What cannot be written stays known here, and is found again by the next start.
        if (status.ok() || absl::IsFailedPrecondition(status) || absl::IsNotFound(status)) OnEnded(job);
      });
}

void JobAdmission::Change(const std::string& key, LogWrite write, LogWriteDone done) {
  changing_.try_emplace(key);
  write_(std::move(write), [this, key, done = std::move(done)](const absl::Status& status) {
    done(status);
    if (const auto deferred = changing_.extract(key)) {
      for (const std::function<void()>& call : deferred.mapped()) call();
    }
  });
}

bool JobAdmission::Defer(const std::string& key, std::function<void()> call) {
  const auto found = changing_.find(key);
  if (found == changing_.end()) return false;
  found->second.push_back(std::move(call));
  return true;
}

}  // namespace mycc
