// The state of a running job: its proposals and the outcomes of their trials, for the search and for progress
// reports. Bookkeeping alone: no clock, no log, no queue. Thread rule: thread-compatible.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/target/target.h"
#include "db/job_store.h"
#include "proto/job_state.pb.h"
#include "proto/tuning.pb.h"
#include "server/job_plan.h"
#include "server/job_search.h"
#include "server/milestones.h"
#include "server/refusal_counts.h"
#include "tuner/scheduler/proposal_window.h"

namespace mycc {

// The result of a final round: times that were taken in turn, so they are comparable.
struct FinalTimes {
  double best_seconds = 0;     // the winner's
  double best_width = 0;       // of its interval, relative
  double default_seconds = 0;  // the default schedule's; 0: it was not in the round, or did not pass
  bool default_failed = false;
  uint32_t finalists = 0;   // number that passed; 0: no round was held
  uint32_t ties = 0;        // other finalists that are as fast, as far as the round can tell
  bool is_earlier = false;  // the round was another job's, with these finalists
};

class JobLedger {
 public:
  JobLedger(std::string id, v1::StoredJob stored, JobPlan plan, std::vector<v1::StoredTask> tasks,
            int64_t created_unix_micros);

  const std::string& id() const { return id_; }
  int64_t created_unix_micros() const { return created_unix_micros_; }
  const v1::StoredJob& stored() const { return stored_; }
  // Why the search began anew; empty: it did not.
  void SetBegunAnew(const std::string& why) { stored_.set_begun_anew(why); }
  const JobPlan& plan() const { return plan_; }
  const std::vector<v1::StoredTask>& stored_tasks() const { return stored_tasks_; }
  // REQUIRES: no search work is under way.
  void SetStoredTask(uint32_t task, v1::StoredTask stored) { stored_tasks_[task] = std::move(stored); }
  // Whether the job searches the task itself.
  bool searches(uint32_t task) const {
    return !stored_tasks_[task].reused() && stored_tasks_[task].measured_by().empty();
  }
  bool searches_any() const;
  // The tasks that another job measures for this one now.
  std::vector<uint32_t> followed() const;

  // The task's next generation, whose trials are about to be measured; `state` has an entry for each.
  void AddProposal(uint32_t task, const v1::SearchState::Generation& state);
  // A trial's final result, before the search is told. `elapsed_seconds`: of the job, or, in a job that is
  // read from the log, when the trial was proposed.
  void Finish(uint32_t task, uint32_t generation, uint32_t index, const v1::MeasureResult& result,
              double elapsed_seconds);
  // The outcomes since the last call, by task. They are not kept any longer: the log has them.
  TaskOutcomes TakeNewOutcomes() { return std::exchange(untold_, {}); }
  // For a search that begins again, and has been told nothing yet: these are the outcomes in the log. Some of
  // them may be told twice.
  void Retell(TaskOutcomes outcomes);

  int64_t open_trials() const { return open_trials_; }
  int64_t open_trials(uint32_t task) const { return tasks_[task].open; }
  // The task's trials that had a verdict on their candidate.
  int64_t num_measured(uint32_t task) const { return tasks_[task].measured; }
  // Every trial is finished that a proposal with this window depends on: the search can make it.
  bool ready_for_proposal(int64_t window) const { return window_.Visible(window) <= complete_; }
  // The window of the latest proposal; 0: there is none.
  uint32_t last_window() const { return last_window_; }
  uint32_t num_proposals() const { return static_cast<uint32_t>(proposals_.size()); }
  uint32_t num_generations(uint32_t task) const {
    return static_cast<uint32_t>(tasks_[task].proposals.size());
  }
  int64_t num_candidates(uint32_t task) const;
  double best_seconds(uint32_t task) const { return tasks_[task].best_seconds; }  // by itself; 0: none yet

  // The latest one of a task that was searched; 0 when it has none yet.
  uint32_t last_generation(uint32_t task) const {
    return static_cast<uint32_t>(std::max<size_t>(tasks_[task].proposals.size(), 1) - 1);
  }

  // The trials of the fastest default schedule and of the fastest candidate; empty: none yet.
  const std::string& default_trial(uint32_t task) const { return tasks_[task].default_trial; }
  const std::string& best_trial(uint32_t task) const { return tasks_[task].best_trial; }
  // The best candidate's time over the default schedule's, each timed by itself; 0: one is missing.
  double best_share(uint32_t task) const {
    const TaskState& state = tasks_[task];
    return state.first_seconds > 0 ? state.best_seconds / state.first_seconds : 0;
  }

  // Whether the task's known time is a negligible share of its model's latency.
  bool is_negligible(uint32_t task) const;

  // The time that the log knew for a task that is not searched.
  void SetKnownBest(uint32_t task, double seconds) {
    tasks_[task].best_seconds = seconds;
    milestones_.SetKnown(task, seconds);
  }
  // The share of the weighted latency that as many trials again are expected to gain; nullopt: unknown.
  std::optional<double> GainOfTwice() const;
  // A task's final round is over, and has a winner.
  void SetFinal(uint32_t task, const FinalTimes& times) { tasks_[task].final = times; }
  // A remark about a task at the job's end; empty when it simply went well.
  std::string TaskOutcome(uint32_t task) const;
  // Without state, message and times, which the server adds.
  v1::JobProgress Progress(bool with_tasks) const;

 private:
  // The sum over a model's kernels, once all have a time.
  void AddLatency(v1::JobProgress* progress) const;
  double GainOf(const v1::Grouping& grouping) const;
  double GroupingGain() const;

  struct Measured {
    int64_t open = 0;              // trials
    std::vector<bool> is_default;  // the candidates that are a sketch's default
    double best_seconds = 0;       // 0: none was valid
  };
  struct TaskState {
    std::vector<size_t> proposals;  // of its generations, as indices of the job's
    int64_t trials = 0, measured = 0, open = 0;
    double best_seconds = 0;    // the fastest that was timed by itself
    double best_width = 0;      // of its interval
    std::string best_trial;     // its trial
    double first_seconds = 0;   // the fastest default schedule, by itself
    double first_width = 0;     // of its interval
    std::string default_trial;  // its trial
    FinalTimes final;           // of the round that was held
    std::map<v1::MeasureStatus, int64_t> outcomes;
  };

  const std::string id_;
  v1::StoredJob stored_;
  const JobPlan plan_;
  std::vector<v1::StoredTask> stored_tasks_;
  const int64_t created_unix_micros_;
  std::vector<Measured> proposals_;
  std::vector<TaskState> tasks_;
  RefusalCounts refusals_;                                                 // of all tasks
  std::map<std::pair<std::string, std::string>, v1::DeviceWork> devices_;  // by worker and device
  TaskOutcomes untold_;
  Milestones milestones_;
  int64_t finished_trials_ = 0;
  int64_t open_trials_ = 0;
  ProposalWindow window_;
  uint32_t last_window_ = 0;
  int complete_ = 0;  // leading proposals without open trials
};

}  // namespace mycc
