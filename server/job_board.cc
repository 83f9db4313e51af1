#include "server/job_board.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
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
      most_searches_(options.most_searches),
      endings_(
          options.endings, log, &store_, &models_, queue, time, executors,
          [this](RunningJob* job) { Advance(job); },
          [this](const RunningJob& job) { return admission_.listing().ProgressOf(job, /*with_tasks=*/true); },
          [this](RunningJob* job) { Remove(job); }),
      proposals_(&store_, queue, time, executors, &endings_, [this](RunningJob* job) { Advance(job); }),
      admission_(
          std::move(options.admission), &store_, time, executors, &running_, &proposals_,
          {[this](const JobLedger& ledger, const std::vector<Trial>& open) { QueueTrials(ledger, open); },
           [this](std::unique_ptr<RunningJob> job) { Discard(std::move(job)); }}) {}

void JobBoard::QueueTrials(const JobLedger& ledger, const std::vector<Trial>& open) {
  for (const Trial& trial : open) {
    QueuedWork queued{.name = trial.name,
                      .job = ledger.id(),
                      .target = ledger.plan().tasks[trial.task].key.target,
                      .task = trial.task,
                      .attempt = trial.attempt,
                      .losses = trial.lost_attempts,
                      .what = TrialWork{trial.trace}};
    if (trial.state == TrialState::kLeased) {
      queue_->Adopt(std::move(queued), absl::StrCat(kAdoptedHolder, trial.worker), time_->Seconds());
    } else {
      queue_->Add(std::move(queued));
    }
  }
  hooks_.on_adopted(ledger.id());
}

void JobBoard::Discard(std::unique_ptr<RunningJob> job) {
  RunningJob* const kept = discarded_.emplace_back(std::move(job)).get();
  kept->ending = JobEnding{.state = JobState::kCancelled, .message = "", .by = 0, .in_log = true};
  hooks_.revoke(kept->id());
  Advance(kept);
}

void JobBoard::Remove(RunningJob* job) {
  EndSearch(std::move(job->search), search_);
  if (std::erase_if(discarded_, [job](const auto& kept) { return kept.get() == job; }) > 0) return;
  const std::string id = job->id();
  hooks_.revoke(id);
  running_.erase(id);
  admission_.OnEnded(id);
}

void JobBoard::Advance(RunningJob* job) {
  if (job->under_way > 0) return;
  if (!job->ending && job->searched_out && job->ledger->open_trials() == 0)
    endings_.EndAsSearched(job, *job->searched_out);
  if (job->ending) {
    endings_.Advance(job);
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

void JobBoard::OnFinished(const TrialId& trial, const v1::MeasureResult& result) {
  RunningJob* const found = Find(trial.job);
  if (found == nullptr) return;
  found->ledger->Finish(trial.task, trial.generation, trial.index, result);
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
    job->window = WindowFor(devices, job->window);
  }
}

void JobBoard::Tick() {
  admission_.Tick();
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
  return std::count_if(running_.begin(), running_.end(),
                       [](const auto& job) { return job.second->search != nullptr; });
}

std::string JobBoard::SearchNoteOf(const std::string& job) const {
  const RunningJob* const found = Find(job);
  return found == nullptr ? "" : SearchNote(*found);
}

void JobBoard::TickJob(RunningJob* job) {
  const double limit = SearchSeconds(job->ledger->stored().spec(), job->ledger->plan().tasks.size());
  if (limit > 0 && job->Elapsed(time_->Seconds()) >= limit) endings_.EndAsSearched(job, StopReason::kTime);
  if (job->finals != nullptr && job->finals->is_open()) endings_.WatchFinals(job);
  const bool may_save = job->unsaved && job->under_way == 0 && !job->ending;
  if (may_save && time_->Seconds() >= job->retry_at) proposals_.Save(job);
  Advance(job);
}

}  // namespace mycc
