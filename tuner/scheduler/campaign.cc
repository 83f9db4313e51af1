#include "tuner/scheduler/campaign.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "tuner/scheduler/generation_plan.h"

namespace mycc {

Campaign::Campaign(const SchedulerConfig& config, std::vector<CampaignTask> tasks, Learn learn)
    : config_(config), learn_(std::move(learn)) {
  MYCC_CHECK(!tasks.empty()) << "a campaign without tasks";
  for (CampaignTask& task : tasks) tasks_.push_back({std::move(task), nullptr});
}

absl::StatusOr<SearchStrategy*> Campaign::Begun(int task) {
  Task& begun = tasks_[task];
  if (begun.search == nullptr) {
    MYCC_ASSIGN_OR_RETURN(begun.search, begun.given.begin());
    begun.given.begin = nullptr;  // with what it holds
  }
  return begun.search.get();
}

int Campaign::num_generations_of(int task) const {
  const Task& asked = tasks_[task];
  return asked.search == nullptr ? 0 : asked.search->ledger().generations();
}

std::vector<std::pair<std::string, int>> Campaign::refusals_of(int task) const {
  const Task& asked = tasks_[task];
  return asked.search == nullptr ? std::vector<std::pair<std::string, int>>() : asked.search->refusals();
}

bool Campaign::Complete(const ProposalRef& proposal) const {
  const auto& generation = tasks_[proposal.task].search->ledger().generation(proposal.generation);
  return std::ranges::all_of(generation,
                             [](const SearchLedger::Entry& entry) { return entry.outcome.has_value(); });
}

bool Campaign::Ready(int64_t window) const {
  return std::all_of(proposals_.begin(), proposals_.begin() + window_.Visible(window),
                     [&](const ProposalRef& proposal) { return Complete(proposal); });
}

std::vector<int> Campaign::VisibleGenerations(int proposals) const {
  std::vector<int> visible(tasks_.size(), 0);
  for (int r = 0; r < proposals; ++r) ++visible[proposals_[r].task];
  return visible;
}

TaskProgress Campaign::ProgressOf(int task, int visible) const {
  TaskProgress progress;
  progress.info = tasks_[task].given.info;
  progress.trials = progress.info.earlier_trials;
  if (tasks_[task].search == nullptr) return progress;
  const SearchStrategy& search = *tasks_[task].search;
  progress.generations = search.ledger().generations();
  progress.trials += search.ledger().num_candidates();
  progress.exhausted = search.Exhausted();
  std::optional<double> best;
  int64_t trials = 0;
  for (int g = 0; g < visible; ++g) {
    trials += std::ssize(search.ledger().generation(g));
    for (const SearchLedger::Entry& entry : search.ledger().generation(g)) {
      if (!entry.outcome || !entry.outcome->ok()) continue;
      best = best ? std::min(*best, *entry.outcome->seconds) : *entry.outcome->seconds;
    }
    progress.best_seconds.push_back(best);
    progress.trials_seen.push_back(trials);
  }
  return progress;
}

std::vector<TaskProgress> Campaign::progress() const {
  std::vector<TaskProgress> progress;
  for (int t = 0; t < num_tasks(); ++t) progress.push_back(ProgressOf(t, num_generations_of(t)));
  return progress;
}

absl::StatusOr<std::optional<Proposal>> Campaign::Next(double elapsed_seconds, int64_t window) {
  const int visible_proposals = window_.Visible(window);
  if (!Ready(window)) {
    return absl::FailedPreconditionError(absl::StrCat("proposal ", num_proposals(), " depends on the first ",
                                                      visible_proposals,
                                                      " proposals; some of their outcomes are missing"));
  }
  for (; learned_proposals_ < visible_proposals; ++learned_proposals_) {
    const ProposalRef& proposal = proposals_[learned_proposals_];
    if (!learn_) continue;
    MYCC_RETURN_IF_ERROR(
        learn_(proposal.task, tasks_[proposal.task].search->ledger().generation(proposal.generation)));
  }
  const std::vector<int> visible = VisibleGenerations(visible_proposals);
  while (true) {
    std::vector<TaskProgress> progress;
    int64_t trials = 0;
    for (int t = 0; t < num_tasks(); ++t) {
      progress.push_back(ProgressOf(t, visible[t]));
      trials += progress.back().trials;
    }
    const TaskChoice choice = NextTask(config_, progress, elapsed_seconds);
    stop_reason_ = choice.stop;
    if (choice.task && GainsTooLittle(progress, elapsed_seconds)) stop_reason_ = StopReason::kGain;
    if (stop_reason_) return std::optional<Proposal>();
    const int task = *choice.task;
    const int64_t limit = std::min({config_.max_trials - trials, choice.most_trials,
                                    config_.max_trials_per_task - progress[task].trials,
                                    MostTrials(config_, num_tasks(), progress[task].trials)});
    MYCC_ASSIGN_OR_RETURN(SearchStrategy* const search, Begun(task));
    MYCC_ASSIGN_OR_RETURN(std::vector<Candidate> candidates,
                          search->Ask(visible[task], static_cast<int>(std::min<int64_t>(limit, 1 << 30))));
    if (candidates.empty()) continue;  // this task is exhausted now, and the choice is another
    OnProposed(task, candidates.size(), elapsed_seconds, window);
    return std::optional<Proposal>(Proposal{task, std::move(candidates)});
  }
}

absl::Status Campaign::Tell(int task, const std::vector<Outcome>& outcomes) {
  if (task < 0 || task >= num_tasks()) {
    return absl::InvalidArgumentError(
        absl::StrCat("outcome of task ", task, ": expected 0 to ", num_tasks() - 1));
  }
  MYCC_ASSIGN_OR_RETURN(SearchStrategy* const search, Begun(task));
  return search->Tell(outcomes);
}

bool Campaign::GainsTooLittle(const std::vector<TaskProgress>& progress, double elapsed_seconds) const {
  if (config_.min_gain_of_twice > 0) {
    const std::optional<double> share = ForecastTwice(config_, progress, elapsed_seconds);
    if (share && *share < config_.min_gain_of_twice) return true;
  }
  if (config_.min_gain <= 0) return false;
  const std::optional<GainForecast> forecast =
      ForecastMinute(config_, progress, proposed_at_, elapsed_seconds);
  return forecast && forecast->Share() < config_.min_gain;
}

void Campaign::OnProposed(int task, size_t size, double elapsed_seconds, int64_t window) {
  proposals_.push_back({task, tasks_[task].search->ledger().generations() - 1});
  proposed_at_.push_back({task, elapsed_seconds});
  window_.Add(static_cast<int64_t>(size), window);
}

absl::Status Campaign::Restore(const Proposal& proposal, double elapsed_seconds, int64_t window) {
  if (proposal.task < 0 || proposal.task >= num_tasks()) {
    return absl::InvalidArgumentError(absl::StrCat("restoring proposal ", num_proposals(), ": task ",
                                                   proposal.task, "; expected 0 to ", num_tasks() - 1));
  }
  MYCC_ASSIGN_OR_RETURN(SearchStrategy* const search, Begun(proposal.task));
  MYCC_RETURN_IF_ERROR(search->Restore(proposal.candidates));
  OnProposed(proposal.task, proposal.candidates.size(), elapsed_seconds, window);
  return absl::OkStatus();
}

}  // namespace mycc
