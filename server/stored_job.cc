#include "server/stored_job.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/workload/parse.h"
#include "server/final_round.h"

namespace mycc {
namespace {

absl::Status Damaged(const std::string& job, const std::string& what) {
  return absl::DataLossError(absl::StrCat("job ", job, ": ", what, " is damaged"));
}

struct LoadedTasks {
  JobPlan plan;
  std::vector<v1::StoredTask> stored;
  std::vector<v1::SearchState> states;
};

absl::StatusOr<LoadedTasks> LoadTasks(const JobStore& store, const std::string& job,
                                      const v1::JobSpec& spec) {
  LoadedTasks loaded;
  loaded.plan.spec = spec;
  MYCC_ASSIGN_OR_RETURN(std::vector<Task> tasks, store.LoadTasks(job));
  for (Task& task : tasks) {
    v1::StoredTask stored;
    v1::SearchState state;
    if (!stored.ParseFromString(task.spec) || !state.ParseFromString(task.search_state)) {
      return Damaged(job, absl::StrCat("the state of task ", task.index));
    }
    PlannedTask planned;
    MYCC_ASSIGN_OR_RETURN(planned.workload, ParseWorkload(task.key.workload, "the log"));
    MYCC_ASSIGN_OR_RETURN(planned.target, ParseTarget(task.key.target));
    planned.protocol = ProtocolFor(planned.target, spec.protocol());
    planned.key = std::move(task.key);
    planned.count = stored.count();
    loaded.plan.tasks.push_back(std::move(planned));
    loaded.stored.push_back(std::move(stored));
    loaded.states.push_back(std::move(state));
  }
  return loaded;
}

}  // namespace

absl::StatusOr<StoredJobState> LoadJob(const TuningLog& log, const JobStore& store, const Job& job) {
  v1::StoredJob stored;
  v1::SchedulerState scheduler;
  if (!stored.ParseFromString(job.spec) || !scheduler.ParseFromString(job.scheduler_state))
    return Damaged(job.id, "its spec");
  MYCC_ASSIGN_OR_RETURN(LoadedTasks tasks, LoadTasks(store, job.id, stored.spec()));
  std::vector<std::vector<Trial>> trials;
  for (uint32_t task = 0; task < tasks.stored.size(); ++task) {
    MYCC_ASSIGN_OR_RETURN(std::vector<Trial> of_task, store.LoadTrials(job.id, task));
    trials.push_back(std::move(of_task));
  }
  StoredJobState state;
  state.elapsed_seconds = scheduler.elapsed_seconds();
  state.job = std::make_unique<ActiveJob>(job.id, std::move(stored), std::move(tasks.plan), tasks.stored,
                                          job.created_unix_micros);

  std::vector<size_t> next_trial(trials.size(), 0);
  std::vector<uint32_t> generations(trials.size(), 0);
  for (const uint32_t task : scheduler.round_tasks()) {
    if (task >= trials.size()) return Damaged(job.id, "its list of rounds");
    const uint32_t generation = generations[task]++;
    StoredRound round;
    round.task = task;
    if (static_cast<int>(generation) < tasks.states[task].generations_size()) {
      round.state = tasks.states[task].generations(static_cast<int>(generation));
    }
    std::vector<Trial> members;
    size_t& at = next_trial[task];
    while (at < trials[task].size() && trials[task][at].generation == generation)
      members.push_back(std::move(trials[task][at++]));
    for (const Trial& trial : members) round.traces.push_back(trial.trace);
    if (round.state.candidates_size() != static_cast<int>(members.size()))
      return Damaged(job.id, absl::StrCat("the state of task ", task));
    state.job->AddRound(task, generation, round.state);
    for (Trial& trial : members) {
      if (trial.result) {
        state.job->Finish(task, generation, trial.index, *trial.result);
      } else if (trial.state != TrialState::kDropped) {
        state.open.push_back(std::move(trial));
      }
    }
    state.rounds.push_back(std::move(round));
  }
  for (uint32_t task = 0; task < trials.size(); ++task) {
    const PlannedTask& planned = state.job->plan().tasks[task];
    if (!tasks.stored[task].reused()) {
      MYCC_ASSIGN_OR_RETURN(const std::vector<v1::Record> final, FinalRecordsOf(log, job.id, task, planned));
      if (!final.empty())
        state.job->SetFinal(task, BestSecondsOf(final), static_cast<uint32_t>(final.size()));
      continue;
    }
    const absl::StatusOr<StoredRecord> best =
        log.Best({planned.key.workload_hash, planned.key.target}, planned.protocol);
    if (best.ok()) state.job->SetKnownBest(task, best->record.result().timing().seconds());
  }
  return state;
}

}  // namespace mycc
