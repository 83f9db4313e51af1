#include "server/job_board.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/farm_window.h"

namespace mycc {
namespace {

constexpr double kWindowSeconds = 1;  // after this, workers may have come or gone

}  // namespace

JobBoard::JobBoard(JobBoardOptions options, TuningLog* log, LeaseQueue* queue, const TimeSource* time,
                   const Executors& executors, JobBoardHooks hooks)
    : store_(log),
      models_(log),
      queue_(queue),
      time_(time),
      hooks_(std::move(hooks)),
      search_(executors.search),
      owners_(std::move(options.owners), log, time, executors.write),
      most_searches_(options.most_searches),
      endings_(
          options.endings, log, &store_, &models_, queue, time, executors,
          [this](RunningJob* job) { Advance(job); },
          [this](const RunningJob& job) { return admission_.listing().ProgressOf(job, /*with_tasks=*/true); },
          [this](RunningJob* job) { Remove(job); }),
      twins_(
          log, queue, &running_, &owners_, executors,
          [this](const TrialId& trial, const v1::MeasureResult& result) { TakeResult(trial, result); },
          [this](RunningJob* job) { Advance(job); }),
      proposals_(&store_, &twins_, time, executors, &endings_, [this](RunningJob* job) { Advance(job); }),
      admission_(
          std::move(options.admission), &store_, time, &owners_, executors, &running_, &proposals_,
          {[this](const JobLedger& ledger, const std::vector<Trial>& open) { QueueTrials(ledger, open); },
           [this](std::unique_ptr<RunningJob> job) { Discard(std::move(job)); },
           [this](const std::string& job, const JobTerms& terms) { SetTerms(job, terms); },
           [this](JobLedger* ledger) { return shared_.Share(ledger); }}),
      shared_(
          &store_, &running_, &owners_, [this](const std::string& job) { return admission_.IsOnItsWay(job); },
          time, executors, &proposals_, [this](RunningJob* job) { Advance(job); }) {}

absl::Status JobBoard::Start() {
  MYCC_RETURN_IF_ERROR(owners_.Start());
  return admission_.Start();
}

void JobBoard::SetTerms(const std::string& job, const JobTerms& terms) {
  RunningJob* const found = Find(job);
  found->terms = terms;
  found->Touch();
  queue_->SetTerms(job, terms);
}

void JobBoard::QueueTrials(const JobLedger& ledger, const std::vector<Trial>& open) {
  queue_->SetTerms(ledger.id(), TermsOf(ledger.stored()));
  std::vector<QueuedWork> waiting;
  for (const Trial& trial : open) {
    QueuedWork queued{.name = trial.name,
                      .job = ledger.id(),
                      .target = ledger.plan().tasks[trial.task].key.target,
                      .task = trial.task,
                      .attempt = trial.attempt,
                      .losses = trial.lost_attempts,
                      .protocol = ledger.plan().tasks[trial.task].protocol,
                      .what = TrialWork{trial.trace}};
    if (trial.state == TrialState::kLeased) {
      twins_.Own(ledger, queued);
      queue_->Adopt(std::move(queued), absl::StrCat(kAdoptedHolder, trial.worker), time_->Seconds());
    } else {
      waiting.push_back(std::move(queued));
    }
  }
  // One task after the other, as a proposal is of one task.
  while (!waiting.empty()) {
    const auto rest = std::stable_partition(
        waiting.begin(), waiting.end(),
        [task = waiting.front().task](const QueuedWork& trial) { return trial.task == task; });
    twins_.Queue(Find(ledger.id()),
                 {std::make_move_iterator(waiting.begin()), std::make_move_iterator(rest)});
    waiting.erase(waiting.begin(), rest);
  }
  hooks_.on_adopted(ledger.id());
}

void JobBoard::Discard(std::unique_ptr<RunningJob> job) {
  RunningJob* const kept = discarded_.emplace_back(std::move(job)).get();
  kept->ending = JobEnding{.state = JobState::kCancelled, .message = "", .by = 0, .in_log = true};
  hooks_.revoke(kept->id());
  twins_.Forget(kept->id());
  Advance(kept);
}

void JobBoard::Remove(RunningJob* job) {
  EndSearch(std::move(job->search), search_);
  if (std::erase_if(discarded_, [job](const auto& kept) { return kept.get() == job; }) > 0) return;
  const std::string id = job->id();
  hooks_.revoke(id);
  running_.erase(id);
  twins_.Forget(id);
  admission_.OnEnded(id);
}

void JobBoard::Advance(RunningJob* job) {
  if (job->under_way > 0) return;
  const bool waits_for_others = !job->ledger->followed().empty();
  if (!job->ending && job->searched_out && job->ledger->open_trials() == 0 && !waits_for_others)
    endings_.EndAsSearched(job, *job->searched_out);
  if (!job->ending && !job->ledger->searches_any() && !waits_for_others)
    endings_.End(job, JobState::kDone, "other jobs have measured what it asks for");
  if (job->ending) {
    endings_.Advance(job);
  } else if (job->stale) {
    if (time_->Seconds() >= job->retry_at) proposals_.BeginAnew(job);
  } else if (!job->ledger->searches_any()) {
    return;  // others measure all of it
  } else if (job->wants_proposals() && !job->unsaved && job->ledger->ready_for_proposal(job->window)) {
    proposals_.Ask(job);
  }
}

RunningJob* JobBoard::Find(const std::string& job) const {
  const auto found = running_.find(job);
  return found == running_.end() ? nullptr : found->second.get();
}

uint64_t JobBoard::RevisionOf(const std::string& job) const {
  const RunningJob* const found = Find(job);
  return found == nullptr ? 0 : found->revision;
}

const JobLedger* JobBoard::Leasable(const std::string& job) const {
  const RunningJob* const found = Find(job);
  if (found == nullptr) return nullptr;
  const bool is_over = found->ending && (found->finals == nullptr || !found->finals->is_open());
  return is_over ? nullptr : found->ledger.get();
}

bool JobBoard::MayLease(const std::string& job) const {
  const RunningJob* const found = Find(job);
  return found != nullptr && (found->ending || owners_.HeldBack(found->terms.owner).empty());
}

void JobBoard::OnFinished(const TrialId& trial, const v1::MeasureResult& result) {
  RunningJob* const found = Find(trial.job);
  if (found == nullptr) return;
  owners_.Add(found->terms.owner, result.timing().run_seconds(), 1);
  TakeResult(trial, result);
  twins_.OnFinished(TrialName(trial), result);
}

void JobBoard::TakeResult(const TrialId& trial, const v1::MeasureResult& result) {
  RunningJob* const found = Find(trial.job);
  if (found == nullptr) return;
  found->ledger->Finish(trial.task, trial.generation, trial.index, result, found->Elapsed(time_->Seconds()));
  found->Touch();
  Advance(found);
}

const JobLedger* JobBoard::LedgerOf(const std::string& job) const {
  const RunningJob* const found = Find(job);
  return found == nullptr ? nullptr : found->ledger.get();
}

void JobBoard::FinishRound(const std::string& job, const std::string& round,
                           const std::vector<v1::MeasureResult>& results, const LogWriteDone& done) {
  RunningJob* const found = Find(job);
  if (found == nullptr) return done(absl::OkStatus());
  owners_.Add(found->terms.owner, results[0].timing().run_seconds(), 0);
  endings_.FinishRound(found, round, results, done);
}

void JobBoard::GiveUpRound(const std::string& job, const std::string& round, const std::string& why) {
  if (RunningJob* const found = Find(job); found != nullptr) endings_.GiveUpRound(found, round, why);
}

void JobBoard::OnLogGone(const absl::Status& why) {
  log_gone_ = why;
  admission_.OnLogGone(why);
  for (const auto& [id, job] : running_) {
    if (job->ending && job->ending->is_unwritable) continue;
    job->ending = JobEnding{
        .state = JobState::kFailed, .message = std::string(why.message()), .by = 0, .is_unwritable = true};
    hooks_.revoke(id);
    job->Touch();
  }
}

void JobBoard::SetWindows() {
  std::map<std::string, int64_t> jobs;  // by target
  for (const auto& [id, job] : running_) {
    if (!job->wants_proposals()) continue;
    for (const auto& [text, target] : job->targets) ++jobs[text];
  }
  std::map<std::string, int64_t> shares;
  for (const auto& [id, job] : running_) {
    if (!job->wants_proposals()) continue;
    int64_t devices = 0;
    for (const auto& [text, target] : job->targets) {
      const auto [share, is_new] = shares.try_emplace(text, 0);
      if (is_new) share->second = (hooks_.devices(*target) + jobs.at(text) - 1) / jobs.at(text);
      devices += share->second;
    }
    job->window = WindowFor(devices, job->window, LeastWindowOf(*job->ledger));
  }
}

void JobBoard::Tick() {
  owners_.Tick();
  admission_.Tick();
  twins_.Watch();
  if (time_->Seconds() >= windows_at_ || running_.size() != jobs_seen_) {
    SetWindows();
    windows_at_ = time_->Seconds() + kWindowSeconds;
    jobs_seen_ = running_.size();
  }
  std::vector<std::string> ids;  // jobs may go while they are advanced
  for (const auto& [id, job] : running_) ids.push_back(id);
  for (const std::string& id : ids) {
    if (RunningJob* const found = Find(id); found != nullptr) TickJob(found);
  }
  if (searches() > most_searches_) proposals_.Bound(running_, most_searches_);
}

int64_t JobBoard::searches() const {
  return std::ranges::count_if(running_, [](const auto& job) { return job.second->search != nullptr; });
}

std::string JobBoard::SearchNoteOf(const std::string& job) const {
  const RunningJob* const found = Find(job);
  return found == nullptr ? "" : SearchNote(*found);
}

void JobBoard::WatchTime(RunningJob* job) {
  const JobLedger& ledger = *job->ledger;
  const size_t tasks = ledger.plan().tasks.size();
  const double limit = SearchSeconds(ledger.stored().spec(), tasks);
  if (limit > 0 && job->Elapsed(time_->Seconds()) >= limit) endings_.EndAsSearched(job, StopReason::kTime);
  const bool has_deadline = job->terms.deadline_unix_micros > 0;
  if (has_deadline &&
      owners_.clock().UnixMicros() >= SearchDeadline(job->terms, ledger.created_unix_micros(), tasks))
    endings_.End(job, JobState::kDone, "its deadline is reached");
}

void JobBoard::TickJob(RunningJob* job) {
  WatchTime(job);
  shared_.Watch(job);
  if (job->finals != nullptr && job->finals->is_open()) endings_.WatchFinals(job);
  const bool may_save = job->unsaved && job->under_way == 0 && !job->ending;
  if (may_save && time_->Seconds() >= job->retry_at) proposals_.Save(job);
  Advance(job);
}

}  // namespace mycc
