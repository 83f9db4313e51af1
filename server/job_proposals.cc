#include "server/job_proposals.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "db/model_store.h"
#include "proto/names.h"
#include "server/history.h"
#include "server/load_job.h"
#include "tuner/cost/model_kind.h"

namespace mycc {
namespace {

constexpr int kMostCrashes = 1;  // between two proposals
constexpr double kSaveRetrySeconds = 1;
// A search that was not asked for so long is one that waits: for workers, or for its turn.
constexpr double kLongRestSeconds = 60;

// A job's search as the log has it.
struct Recorded {
  std::vector<v1::Proposal> proposals;
  TaskOutcomes outcomes;
};

// DataLoss unless there are `expected` proposals.
absl::StatusOr<Recorded> ReadRecorded(TuningLog* log, const std::string& id, size_t expected) {
  const JobStore store(log);
  MYCC_ASSIGN_OR_RETURN(const Job job, store.GetJob(id));
  MYCC_ASSIGN_OR_RETURN(LoadedJob loaded, LoadJob(*log, store, job));
  if (loaded.proposals.size() == expected)
    return Recorded{std::move(loaded.proposals), loaded.ledger->TakeNewOutcomes()};
  return absl::DataLossError(
      absl::StrCat("the log has ", loaded.proposals.size(), " proposals; expected ", expected));
}

// Whether `a` is to be ended before `b`. The one that has waited longest is, when that is long. Otherwise all
// are busy and asked in turns, so that the one that was asked last is asked again last.
bool EndsBefore(const RunningJob& a, const RunningJob& b, double now) {
  const bool is_long = now - std::min(a.search_used, b.search_used) >= kLongRestSeconds;
  return is_long ? a.search_used < b.search_used : a.search_used > b.search_used;
}

Generation GenerationOf(const RunningJob& job, const v1::Proposal& proposal, double elapsed_seconds) {
  const JobLedger& ledger = *job.ledger;
  Generation generation{.job = job.id(),
                        .task = proposal.task(),
                        .generation = proposal.generation(),
                        .proposal = ledger.num_proposals(),
                        .elapsed_seconds = elapsed_seconds,
                        .state = proposal.state().SerializeAsString(),
                        .trials = {}};
  const std::string* const model =
      OfNearestKind(job.model_ids, ModelKind(ledger.plan().tasks[proposal.task()].target));
  for (int i = 0; i < proposal.traces_size(); ++i) {
    const v1::SearchState::Candidate& candidate = proposal.state().candidates(i);
    NewTrial& trial = generation.trials.emplace_back();
    trial.trace = proposal.traces(i);
    if (candidate.has_predicted_seconds())
      trial.provenance.set_predicted_score(1 / candidate.predicted_seconds());
    const std::string origin(OriginName(static_cast<Origin>(candidate.origin())));
    trial.provenance.set_strategy(absl::StrCat(ledger.stored().spec().strategy(), "/", origin));
    trial.provenance.set_seed(ledger.stored().spec().seed());
    if (model != nullptr) trial.provenance.set_model(*model);
  }
  return generation;
}

// The tasks as a search sees them that begins anew.
absl::StatusOr<std::vector<v1::StoredTask>> TasksAnew(const JobLedger& ledger, TuningLog* log) {
  History history(log);
  std::vector<v1::StoredTask> tasks = ledger.stored_tasks();
  for (uint32_t task = 0; task < tasks.size(); ++task) {
    if (!ledger.searches(task)) continue;
    MYCC_ASSIGN_OR_RETURN(v1::StoredTask recalled,
                          history.Recall(ledger.plan().tasks[task], /*trials=*/0, /*fresh=*/true));
    tasks[task].mutable_history()->Swap(recalled.mutable_history());
    tasks[task].set_first_generation(ledger.num_generations(task));
    tasks[task].set_earlier_trials(ledger.num_candidates(task));
  }
  return tasks;
}

}  // namespace

absl::Status WriteTaskSpecs(JobStore* store, const std::string& job, const TaskSpecs& tasks,
                            const std::string& begun_anew) {
  MYCC_ASSIGN_OR_RETURN(const Job known, store->GetJob(job));
  if (begun_anew.empty()) return store->SetSpecs(job, known.spec, tasks);
  v1::StoredJob stored;
  if (!stored.ParseFromString(known.spec))
    return absl::DataLossError(absl::StrCat("job ", job, ": its spec is damaged"));
  stored.set_begun_anew(begun_anew);
  return store->SetSpecs(job, stored.SerializeAsString(), tasks);
}

JobProposals::JobProposals(JobStore* store, TwinTrials* twins, const TimeSource* time, Executors executors,
                           JobEndings* endings, AdvanceJob advance)
    : store_(store),
      twins_(twins),
      time_(time),
      executors_(std::move(executors)),
      endings_(endings),
      advance_(std::move(advance)) {}

void JobProposals::BuildSearch(RunningJob* job, std::vector<v1::Proposal> proposals) {
  struct Read {
    SearchStart start;
    std::map<std::string, std::string> model_ids;
  };
  const JobLedger& ledger = *job->ledger;
  if (!ledger.searches_any()) return;
  // A job outlives all work that is under way for it.
  auto read = std::make_shared<Read>(Read{.start = {.job = &ledger.stored(),
                                                    .tasks = &ledger.plan().tasks,
                                                    .stored_tasks = &ledger.stored_tasks(),
                                                    .models = {},
                                                    .proposals = std::move(proposals)},
                                          .model_ids = {}});
  ++job->under_way;
  executors_.read(
      [read](TuningLog* log) {
        for (const std::string& id : read->start.job->models()) {
          absl::StatusOr<StoredModel> model = ModelStore(log).Load(id);
          if (!model.ok()) continue;
          read->model_ids[model->kind] = id;
          read->start.models[model->kind] = std::move(model->bytes);
        }
      },
      [this, job, read] {
        job->model_ids = std::move(read->model_ids);
        BuildNow(job, std::move(read->start));
      });
}

void JobProposals::BuildNow(RunningJob* job, SearchStart start) {
  struct Build {
    SearchStart start;
    absl::StatusOr<std::unique_ptr<JobSearch>> search = absl::UnknownError("");
  };
  auto build = std::make_shared<Build>();
  build->start = std::move(start);
  job->asked_at = time_->Seconds();
  executors_.search(
      [build, start_search = executors_.start_search] { build->search = start_search(build->start); },
      [this, job, build] {
        --job->under_way;
        job->asked_at.reset();
        if (build->search.ok()) {
          job->search = *std::move(build->search);
          job->search_used = time_->Seconds();
        } else {
          OnTrouble(job, build->search.status());
        }
        advance_(job);
      });
}

void JobProposals::Ask(RunningJob* job) {
  if (job->search == nullptr) return Rebuild(job);
  struct Asked {
    TaskOutcomes outcomes;
    absl::StatusOr<SearchStep> step = absl::UnknownError("");
  };
  auto asked = std::make_shared<Asked>();
  asked->outcomes = job->ledger->TakeNewOutcomes();
  ++job->under_way;
  job->asked_at = time_->Seconds();
  executors_.search([asked, search = job->search.get(), elapsed = job->Elapsed(time_->Seconds()),
                     window = job->window] { asked->step = search->Next(asked->outcomes, elapsed, window); },
                    [this, job, asked] {
                      --job->under_way;
                      job->asked_at.reset();
                      job->search_used = time_->Seconds();
                      OnStep(job, std::move(asked->step));
                      advance_(job);
                    });
}

void JobProposals::OnStep(RunningJob* job, absl::StatusOr<SearchStep> step) {
  if (!step.ok()) {
    OnTrouble(job, step.status());
  } else if (step->stop_reason) {
    job->searched_out = step->stop_reason;
    // Trials in flight belong to the job, unless its time is over.
    if (step->stop_reason == StopReason::kTime) endings_->EndAsSearched(job, StopReason::kTime);
  } else if (!job->ending) {
    job->crashes = 0;
    job->unsaved = *std::move(step->proposal);
    Save(job);
  }
}

void JobProposals::OnTrouble(RunningJob* job, const absl::Status& trouble) {
  EndSearch(std::move(job->search), executors_.search);
  if (absl::IsOutOfRange(trouble) && !job->ending) {
    job->stale = std::string(trouble.message());
    return;
  }
  const bool crashed = absl::IsAborted(trouble);
  if (crashed) {
    ++crashes_;
    ++job->all_crashes;
    job->last_crash = std::string(trouble.message());
    job->Touch();
  }
  if (crashed && job->crashes++ < kMostCrashes && !job->ending) {
    Rebuild(job);
    return;
  }
  endings_->End(job, JobState::kFailed, std::string(trouble.message()));
}

void JobProposals::BeginAnew(RunningJob* job) {
  ++job->under_way;
  ReadLog(
      executors_.read, [ledger = job->ledger.get()](TuningLog* log) { return TasksAnew(*ledger, log); },
      [this, job](absl::StatusOr<std::vector<v1::StoredTask>> tasks) {
        --job->under_way;
        if (tasks.ok()) {
          WriteAnew(job, *std::move(tasks));
        } else {
          job->retry_at = time_->Seconds() + kSaveRetrySeconds;
        }
        advance_(job);
      });
}

void JobProposals::WriteAnew(RunningJob* job, std::vector<v1::StoredTask> tasks) {
  TaskSpecs specs;
  for (uint32_t task = 0; task < tasks.size(); ++task)
    specs.emplace_back(task, tasks[task].SerializeAsString());
  const std::string why = absl::StrCat("its search began anew after ", job->ledger->num_proposals(),
                                       " proposals, with the results so far as its history: ", *job->stale);
  ++job->under_way;
  executors_.write([store = store_, id = job->id(), specs = std::move(specs),
                    why] { return WriteTaskSpecs(store, id, specs, why); },
                   [this, job, why, tasks = std::move(tasks)](const absl::Status& status) {
                     --job->under_way;
                     if (!status.ok()) {
                       job->retry_at = time_->Seconds() + kSaveRetrySeconds;
                     } else if (!job->ending) {
                       for (uint32_t task = 0; task < tasks.size(); ++task)
                         job->ledger->SetStoredTask(task, tasks[task]);
                       job->ledger->SetBegunAnew(why);
                       job->stale.reset();
                       job->Touch();
                       SearchMore(job);
                     }
                     advance_(job);
                   });
}

void JobProposals::SearchMore(RunningJob* job) {
  EndSearch(std::move(job->search), executors_.search);
  job->searched_out.reset();
  Rebuild(job);
}

// Every proposal that was proposed is in the log: a search is asked for the next one afterwards.
void JobProposals::Rebuild(RunningJob* job) {
  auto recorded = std::make_shared<absl::StatusOr<Recorded>>(absl::UnknownError(""));
  ++job->under_way;
  executors_.read([recorded, id = job->id(), expected = job->ledger->num_proposals()](
                      TuningLog* log) { *recorded = ReadRecorded(log, id, expected); },
                  [this, job, recorded] {
                    --job->under_way;
                    if (recorded->ok()) {
                      job->ledger->Retell(std::move((*recorded)->outcomes));
                      BuildSearch(job, std::move((*recorded)->proposals));
                    } else {
                      OnTrouble(job, recorded->status());
                    }
                    advance_(job);
                  });
}

void JobProposals::Bound(const RunningJobs& jobs, int most) {
  std::vector<RunningJob*> at_rest;
  int searches = 0;
  for (const auto& [id, job] : jobs) {
    searches += job->search != nullptr ? 1 : 0;
    // One that can be asked now is asked in this turn.
    if (job->is_at_rest() && !job->ledger->ready_for_proposal(job->window)) at_rest.push_back(job.get());
  }
  const auto ends_before = [now = time_->Seconds()](const RunningJob* a, const RunningJob* b) {
    return EndsBefore(*a, *b, now);
  };
  for (; searches > most && !at_rest.empty(); --searches) {
    const auto next = std::ranges::min_element(at_rest, ends_before);
    EndSearch(std::move((*next)->search), executors_.search);
    at_rest.erase(next);
  }
}

void JobProposals::Save(RunningJob* job) {
  const double elapsed = job->Elapsed(time_->Seconds());
  ++job->under_way;
  executors_.write(
      [store = store_, generation = GenerationOf(*job, *job->unsaved, elapsed)] {
        return store->AddGeneration(generation);
      },
      [this, job](const absl::Status& status) {
        --job->under_way;
        OnSaved(job, status);
        advance_(job);
      });
}

void JobProposals::OnSaved(RunningJob* job, const absl::Status& status) {
  if (job->ending) return;  // meanwhile
  if (IsPassing(status)) {
    job->retry_at = time_->Seconds() + kSaveRetrySeconds;
    return;
  }
  if (!status.ok()) return endings_->End(job, JobState::kFailed, std::string(status.message()));
  const v1::Proposal& proposal = *job->unsaved;
  job->ledger->AddProposal(proposal.task(), proposal.state());
  std::vector<QueuedWork> trials;
  for (int i = 0; i < proposal.traces_size(); ++i) {
    const TrialId id{job->id(), proposal.task(), proposal.generation(), static_cast<uint32_t>(i)};
    trials.push_back({.name = TrialName(id),
                      .job = job->id(),
                      .target = job->ledger->plan().tasks[proposal.task()].key.target,
                      .task = proposal.task(),
                      .protocol = job->ledger->plan().tasks[proposal.task()].protocol,
                      .what = TrialWork{proposal.traces(i)}});
  }
  job->unsaved.reset();
  job->Touch();
  twins_->Queue(job, std::move(trials));
}

}  // namespace mycc
