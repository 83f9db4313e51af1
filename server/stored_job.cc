#include "server/stored_job.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/workload/parse.h"
#include "command/protocols.h"
#include "server/final_round.h"

namespace mycc {
namespace {

absl::Status Damaged(const std::string& job, const std::string& what) {
  return absl::DataLossError(absl::StrCat("job ", job, ": ", what, " is damaged"));
}

struct LoadedTasks {
  JobPlan plan;
  std::vector<v1::StoredTask> stored;
  std::vector<v1::SearchState> old_states;  // of the generations that an older build wrote
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
    loaded.old_states.push_back(std::move(state));
  }
  return loaded;
}

struct LoadedRounds {
  std::vector<v1::SearchRound> rounds;  // in their order, without traces yet
  double elapsed_seconds = 0;
};

absl::StatusOr<LoadedRounds> LoadRounds(const JobStore& store, const Job& job,
                                        const std::vector<v1::SearchState>& old_states) {
  LoadedRounds loaded;
  std::vector<uint32_t> generations(old_states.size(), 0);
  const auto add = [&](uint32_t task) -> v1::SearchRound& {
    v1::SearchRound& round = loaded.rounds.emplace_back();
    round.set_task(task);
    round.set_generation(generations[task]++);
    return round;
  };
  v1::SchedulerState scheduler;
  if (!scheduler.ParseFromString(job.scheduler_state)) return Damaged(job.id, "its list of rounds");
  loaded.elapsed_seconds = scheduler.elapsed_seconds();
  for (const uint32_t task : scheduler.round_tasks()) {
    if (task >= old_states.size()) return Damaged(job.id, "its list of rounds");
    v1::SearchRound& round = add(task);
    const v1::SearchState& state = old_states[task];
    const int generation = static_cast<int>(round.generation());
    if (generation < state.generations_size()) *round.mutable_state() = state.generations(generation);
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<Generation> stored, store.LoadGenerations(job.id));
  for (const Generation& generation : stored) {
    if (generation.task >= old_states.size() || generation.round != loaded.rounds.size())
      return Damaged(job.id, "its list of rounds");
    v1::SearchRound& round = add(generation.task);
    if (round.generation() != generation.generation ||
        !round.mutable_state()->ParseFromString(generation.state))
      return Damaged(job.id, absl::StrCat("the state of task ", generation.task));
    loaded.elapsed_seconds = generation.elapsed_seconds;
  }
  return loaded;
}

// Moves the trials of each round from those of its task, which are in the order of generations.
absl::Status AddTrials(std::vector<std::vector<Trial>> trials, StoredJobState* state) {
  std::vector<size_t> next_trial(trials.size(), 0);
  for (v1::SearchRound& round : state->rounds) {
    std::vector<Trial>& of_task = trials[round.task()];
    size_t& at = next_trial[round.task()];
    const size_t first = at;
    for (; at < of_task.size() && of_task[at].generation == round.generation(); ++at) {
      if (of_task[at].index != at - first) break;
      round.add_traces(of_task[at].trace);
    }
    if (round.state().candidates_size() != static_cast<int>(at - first))
      return Damaged(state->job->id(), absl::StrCat("the state of task ", round.task()));
    state->job->AddRound(round.task(), round.state());
    for (size_t i = first; i < at; ++i) {
      Trial& trial = of_task[i];
      if (trial.result) {
        state->job->Finish(round.task(), round.generation(), trial.index, *trial.result);
      } else if (trial.state != TrialState::kDropped) {
        state->open.push_back(std::move(trial));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StoredJobState> LoadJob(const TuningLog& log, const JobStore& store, const Job& job) {
  v1::StoredJob stored;
  if (!stored.ParseFromString(job.spec)) return Damaged(job.id, "its spec");
  MYCC_ASSIGN_OR_RETURN(LoadedTasks tasks, LoadTasks(store, job.id, stored.spec()));
  MYCC_ASSIGN_OR_RETURN(LoadedRounds rounds, LoadRounds(store, job, tasks.old_states));
  std::vector<std::vector<Trial>> trials;
  for (uint32_t task = 0; task < tasks.stored.size(); ++task) {
    MYCC_ASSIGN_OR_RETURN(std::vector<Trial> of_task, store.LoadTrials(job.id, task));
    trials.push_back(std::move(of_task));
  }
  StoredJobState state;
  state.elapsed_seconds = rounds.elapsed_seconds;
  state.rounds = std::move(rounds.rounds);
  state.job = std::make_unique<ActiveJob>(job.id, std::move(stored), std::move(tasks.plan), tasks.stored,
                                          job.created_unix_micros);
  MYCC_RETURN_IF_ERROR(AddTrials(std::move(trials), &state));
  for (uint32_t task = 0; task < tasks.stored.size(); ++task) {
    const PlannedTask& planned = state.job->plan().tasks[task];
    if (!tasks.stored[task].reused()) {
      MYCC_ASSIGN_OR_RETURN(const std::vector<v1::Record> final, FinalRecordsOf(log, job.id, task, planned));
      MYCC_ASSIGN_OR_RETURN(const std::optional<v1::Record> by_default,
                            RecordOfTrial(log, state.job->default_trial(task)));
      state.job->SetFinal(task, FinalTimesOf(final, by_default));
      continue;
    }
    const absl::StatusOr<StoredRecord> best =
        log.Best({planned.key.workload_hash, planned.key.target}, planned.protocol);
    if (best.ok()) state.job->SetKnownBest(task, best->record.result().timing().seconds());
  }
  return state;
}

}  // namespace mycc
