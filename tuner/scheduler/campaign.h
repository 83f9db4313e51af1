// The search of a whole job: a strategy for each task, in proposals that are one generation of one task each.
//
// Deterministic, as a strategy is: a proposal is a function of the earlier ones, of its window, and of the
// outcomes that the windows let it see (proposal_window.h), whatever order they arrive in. With the least
// window, proposal r + 1 sees the proposals up to r - 1. How many candidates a proposal has at most is a
// function of the budget and of the trials so far (generation_plan.h). Only the end may depend on the time
// that is passed in. After a crash, Restore the recorded proposals with their windows in order, Tell the
// recorded outcomes, and go on. Thread rule: thread-compatible. No clock, no thread, no I/O.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tuner/scheduler/gain_forecast.h"
#include "tuner/scheduler/proposal_window.h"
#include "tuner/scheduler/task_scheduler.h"
#include "tuner/search/strategy.h"

namespace mycc {

struct CampaignTask {
  TaskInfo info;
  // Makes the task's search, which takes a while. It is called once, for the task's first proposal, so that
  // the first proposal of thousands of tasks does not wait for all.
  std::function<absl::StatusOr<std::unique_ptr<SearchStrategy>>()> begin;
};

struct Proposal {
  int task = 0;
  std::vector<Candidate> candidates;  // one generation of the task's search, never empty

  bool operator==(const Proposal&) const = default;
};

// Called with each proposal's candidates and outcomes, in order of proposals, before any decision depends on
// them: a cost model takes its samples here. Its lessons must be a function of these calls. Next returns its
// error.
using Learn = std::function<absl::Status(int task, const std::vector<SearchLedger::Entry>& generation)>;

class Campaign {
 public:
  Campaign(const SchedulerConfig& config, std::vector<CampaignTask> tasks, Learn learn = nullptr);

  // True when Next() would not refuse: all outcomes that the next proposal sees are known.
  bool Ready(int64_t window = 1) const;
  // The next proposal; nullopt when the campaign is over, see stop_reason(). FailedPrecondition when not
  // Ready().
  absl::StatusOr<std::optional<Proposal>> Next(double elapsed_seconds, int64_t window = 1);
  // Outcomes of task `task`, in any order and grouping; as SearchStrategy::Tell.
  absl::Status Tell(int task, const std::vector<Outcome>& outcomes);
  // Takes a recorded proposal, which was made at this time and with this window, in place of asking for it;
  // as SearchStrategy::Restore.
  absl::Status Restore(const Proposal& proposal, double elapsed_seconds, int64_t window = 1);

  // Set once Next() has returned nullopt. Proposals may still be in flight then.
  std::optional<StopReason> stop_reason() const { return stop_reason_; }
  int num_proposals() const { return static_cast<int>(proposals_.size()); }
  int num_tasks() const { return static_cast<int>(tasks_.size()); }
  // Generations of the task so far.
  int num_generations_of(int task) const;
  // Why points did not become candidates of the task's latest proposal, as SearchStrategy::refusals.
  std::vector<std::pair<std::string, int>> refusals_of(int task) const;
  // The progress of every task with all outcomes told so far, for reports; decisions see fewer outcomes.
  std::vector<TaskProgress> progress() const;

 private:
  struct Task {
    CampaignTask given;
    std::unique_ptr<SearchStrategy> search;  // null before its first proposal
  };
  struct ProposalRef {
    int task;
    int generation;
  };

  absl::StatusOr<SearchStrategy*> Begun(int task);
  // A proposal of `size` candidates of the task was made.
  void OnProposed(int task, size_t size, double elapsed_seconds, int64_t window);

  std::vector<int> VisibleGenerations(int proposals) const;
  TaskProgress ProgressOf(int task, int visible) const;
  bool Complete(const ProposalRef& proposal) const;
  bool GainsTooLittle(const std::vector<TaskProgress>& progress, double elapsed_seconds) const;

  const SchedulerConfig config_;
  std::vector<Task> tasks_;
  const Learn learn_;
  std::vector<ProposalRef> proposals_;
  std::vector<ProposedAt> proposed_at_;  // the same with their times
  ProposalWindow window_;
  int learned_proposals_ = 0;
  std::optional<StopReason> stop_reason_;
};

}  // namespace mycc
