#include "server/load_job.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/trace.h"
#include "codegen/workload/parse.h"
#include "proto/names.h"
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
    planned.protocol = ProtocolOf(spec, planned.target);
    planned.key = std::move(task.key);
    planned.count = stored.count();
    planned.weight = WeightOf(stored);
    loaded.plan.tasks.push_back(std::move(planned));
    loaded.stored.push_back(std::move(stored));
    loaded.old_states.push_back(std::move(state));
  }
  return loaded;
}

struct LoadedProposals {
  std::vector<v1::Proposal> proposals;  // in their order, without traces yet
  double elapsed_seconds = 0;
};

absl::StatusOr<LoadedProposals> LoadProposals(const JobStore& store, const Job& job,
                                              const std::vector<v1::SearchState>& old_states) {
  LoadedProposals loaded;
  std::vector<uint32_t> generations(old_states.size(), 0);
  const auto add = [&](uint32_t task) -> v1::Proposal& {
    v1::Proposal& proposal = loaded.proposals.emplace_back();
    proposal.set_task(task);
    proposal.set_generation(generations[task]++);
    return proposal;
  };
  v1::SchedulerState scheduler;
  if (!scheduler.ParseFromString(job.scheduler_state)) return Damaged(job.id, "its list of proposals");
  loaded.elapsed_seconds = scheduler.elapsed_seconds();
  for (const uint32_t task : scheduler.proposal_tasks()) {
    if (task >= old_states.size()) return Damaged(job.id, "its list of proposals");
    v1::Proposal& proposal = add(task);
    const v1::SearchState& state = old_states[task];
    const int generation = static_cast<int>(proposal.generation());
    if (generation < state.generations_size()) *proposal.mutable_state() = state.generations(generation);
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<Generation> stored, store.LoadGenerations(job.id));
  for (const Generation& generation : stored) {
    if (generation.task >= old_states.size() || generation.proposal != loaded.proposals.size())
      return Damaged(job.id, "its list of proposals");
    v1::Proposal& proposal = add(generation.task);
    proposal.set_elapsed_seconds(generation.elapsed_seconds);
    if (proposal.generation() != generation.generation ||
        !proposal.mutable_state()->ParseFromString(generation.state))
      return Damaged(job.id, absl::StrCat("the state of task ", generation.task));
    loaded.elapsed_seconds = generation.elapsed_seconds;
  }
  return loaded;
}

// By generation and index.
using TrialsOfTask = std::map<std::pair<uint32_t, uint32_t>, Trial>;

absl::StatusOr<TrialsOfTask> LoadTrialsOf(const JobStore& store, const std::string& job, uint32_t task) {
  MYCC_ASSIGN_OR_RETURN(std::vector<Trial> trials, store.LoadTrials(job, task));
  TrialsOfTask found;
  for (Trial& trial : trials) {
    const std::pair<uint32_t, uint32_t> place(trial.generation, trial.index);
    found.emplace(place, std::move(trial));
  }
  return found;
}

// Whether what the row says of a candidate makes sense: it is to be measured, or was.
bool IsSound(const Trial& trial) {
  if (trial.result || trial.state == TrialState::kDropped) return !trial.trace.empty();
  const bool is_open = trial.state == TrialState::kQueued || trial.state == TrialState::kLeased;
  return is_open && ParseTrace(trial.trace).ok();
}

// The result of a candidate whose row is damaged beyond that, or is not where it belongs.
v1::MeasureResult LostResult(const TrialId& id) {
  v1::MeasureResult result;
  result.set_status(v1::MEASURE_STATUS_WORKER_LOST);
  result.set_error(absl::StrCat("the log's row of trial ", TrialName(id), " is damaged"));
  return result;
}

// Moves the trials of each proposal to it. A damaged row costs its own trial: nothing is known of it any
// more.
void AddTrials(std::vector<TrialsOfTask> trials, LoadedJob* state) {
  for (v1::Proposal& proposal : state->proposals) {
    state->ledger->AddProposal(proposal.task(), proposal.state());
    for (uint32_t index = 0; index < static_cast<uint32_t>(proposal.state().candidates_size()); ++index) {
      const auto found = trials[proposal.task()].find({proposal.generation(), index});
      if (found == trials[proposal.task()].end() || !IsSound(found->second)) {
        proposal.add_traces("");
        state->ledger->Finish(
            proposal.task(), proposal.generation(), index,
            LostResult({state->ledger->id(), proposal.task(), proposal.generation(), index}),
            proposal.elapsed_seconds());
        continue;
      }
      Trial& trial = found->second;
      proposal.add_traces(trial.trace);
      if (trial.result) {
        state->ledger->Finish(proposal.task(), proposal.generation(), index, *trial.result,
                              proposal.elapsed_seconds());
      } else if (trial.state != TrialState::kDropped) {
        state->open.push_back(std::move(trial));
      }
    }
  }
}

// The time of a task that is not searched, as the log has it now. A damaged record is done without.
void AddKnownTime(const TuningLog& log, uint32_t task, JobLedger* ledger) {
  if (!ledger->stored_tasks()[task].reused()) return;
  const PlannedTask& planned = ledger->plan().tasks[task];
  const absl::StatusOr<StoredRecord> best =
      log.Best({planned.key.workload_hash, planned.key.target}, planned.protocol);
  if (best.ok()) ledger->SetKnownBest(task, best->record.result().timing().seconds());
}

// Adds the task's times of a final round as the log has them now. A damaged record is done without.
absl::Status AddFinalTimes(const TuningLog& log, uint32_t task, JobLedger* ledger) {
  if (ledger->stored_tasks()[task].reused()) return absl::OkStatus();
  const PlannedTask& planned = ledger->plan().tasks[task];
  const absl::StatusOr<std::vector<v1::Record>> final = FinalRecordsOf(log, ledger->id(), task, planned);
  const absl::StatusOr<std::optional<v1::Record>> by_default =
      RecordOfTrial(log, ledger->default_trial(task));
  for (const absl::Status& status : {final.status(), by_default.status()}) {
    if (!status.ok()) return absl::IsDataLoss(status) ? absl::OkStatus() : status;
  }
  ledger->SetFinal(task, FinalTimesOf(*final, *by_default));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadedJob> LoadJob(const TuningLog& log, const JobStore& store, const Job& job) {
  v1::StoredJob stored;
  if (!stored.ParseFromString(job.spec)) return Damaged(job.id, "its spec");
  MYCC_ASSIGN_OR_RETURN(LoadedTasks tasks, LoadTasks(store, job.id, stored.spec()));
  MYCC_ASSIGN_OR_RETURN(LoadedProposals proposals, LoadProposals(store, job, tasks.old_states));
  std::vector<TrialsOfTask> trials;
  for (uint32_t task = 0; task < tasks.stored.size(); ++task) {
    MYCC_ASSIGN_OR_RETURN(TrialsOfTask of_task, LoadTrialsOf(store, job.id, task));
    trials.push_back(std::move(of_task));
  }
  LoadedJob state;
  state.elapsed_seconds = proposals.elapsed_seconds;
  state.proposals = std::move(proposals.proposals);
  state.ledger = std::make_unique<JobLedger>(job.id, std::move(stored), std::move(tasks.plan), tasks.stored,
                                             job.created_unix_micros);
  // Before the trials: what each percent of the job's latency cost is counted from when all have a time.
  for (uint32_t task = 0; task < tasks.stored.size(); ++task) AddKnownTime(log, task, state.ledger.get());
  AddTrials(std::move(trials), &state);
  for (uint32_t task = 0; task < tasks.stored.size(); ++task)
    MYCC_RETURN_IF_ERROR(AddFinalTimes(log, task, state.ledger.get()));
  return state;
}

}  // namespace mycc
