#include "server/job_rounds.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "db/model_store.h"
#include "proto/names.h"
#include "server/stored_job.h"

namespace mycc {
namespace {

constexpr int kMostCrashes = 1;  // between two rounds
constexpr double kRetrySeconds = 1;

// The rounds of a job as the log has them. DataLoss unless there are `expected` of them.
absl::StatusOr<std::vector<v1::SearchRound>> ReadRounds(TuningLog* log, const std::string& id,
                                                        size_t expected) {
  const JobStore store(log);
  MYCC_ASSIGN_OR_RETURN(const Job job, store.GetJob(id));
  MYCC_ASSIGN_OR_RETURN(StoredJobState loaded, LoadJob(*log, store, job));
  if (loaded.rounds.size() == expected) return std::move(loaded.rounds);
  return absl::DataLossError(
      absl::StrCat("the log has ", loaded.rounds.size(), " rounds; expected ", expected));
}

Generation GenerationOf(const RunningJob& job, const v1::SearchRound& round, double elapsed_seconds) {
  const ActiveJob& active = *job.active;
  Generation generation{.job = job.id(),
                        .task = round.task(),
                        .generation = round.generation(),
                        .round = active.num_rounds(),
                        .elapsed_seconds = elapsed_seconds,
                        .state = round.state().SerializeAsString(),
                        .trials = {}};
  const auto model = job.model_ids.find(ModelKind(active.plan().tasks[round.task()].target));
  for (int i = 0; i < round.traces_size(); ++i) {
    const v1::SearchState::Candidate& candidate = round.state().candidates(i);
    NewTrial& trial = generation.trials.emplace_back();
    trial.trace = round.traces(i);
    if (candidate.has_predicted_seconds())
      trial.provenance.set_predicted_score(1 / candidate.predicted_seconds());
    const std::string origin(OriginName(static_cast<Origin>(candidate.origin())));
    trial.provenance.set_strategy(absl::StrCat(active.stored().spec().strategy(), "/", origin));
    trial.provenance.set_seed(active.stored().spec().seed());
    if (model != job.model_ids.end()) trial.provenance.set_model(model->second);
  }
  return generation;
}

}  // namespace

JobRounds::JobRounds(JobStore* store, LeaseQueue* queue, const TimeSource* time, Executors executors,
                     JobEndings* endings, AdvanceJob advance)
    : store_(store),
      queue_(queue),
      time_(time),
      executors_(std::move(executors)),
      endings_(endings),
      advance_(std::move(advance)) {}

void JobRounds::BuildSearch(RunningJob* job, std::vector<v1::SearchRound> rounds) {
  struct Read {
    SearchStart start;
    std::map<std::string, std::string> model_ids;
  };
  const ActiveJob& active = *job->active;
  // A job outlives all work that is under way for it.
  auto read = std::make_shared<Read>(Read{.start = {.job = &active.stored(),
                                                    .tasks = &active.plan().tasks,
                                                    .stored_tasks = &active.stored_tasks(),
                                                    .models = {},
                                                    .rounds = std::move(rounds)},
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

void JobRounds::BuildNow(RunningJob* job, SearchStart start) {
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
        } else {
          OnTrouble(job, build->search.status());
        }
        advance_(job);
      });
}

void JobRounds::Ask(RunningJob* job) {
  struct Asked {
    TaskOutcomes outcomes;
    absl::StatusOr<SearchStep> step = absl::UnknownError("");
  };
  auto asked = std::make_shared<Asked>();
  asked->outcomes = job->active->TakeUntold();
  ++job->under_way;
  job->asked_at = time_->Seconds();
  executors_.search(
      [asked, search = job->search.get(), elapsed = job->Elapsed(time_->Seconds())] {
        asked->step = search->Next(asked->outcomes, elapsed);
      },
      [this, job, asked] {
        --job->under_way;
        job->asked_at.reset();
        OnStep(job, std::move(asked->step));
        advance_(job);
      });
}

void JobRounds::OnStep(RunningJob* job, absl::StatusOr<SearchStep> step) {
  if (!step.ok()) {
    OnTrouble(job, step.status());
  } else if (step->stop_reason) {
    job->searched_out = step->stop_reason;
    // Trials in flight belong to the job, unless its time is over.
    if (step->stop_reason == StopReason::kTime) endings_->EndAsSearched(job, StopReason::kTime);
  } else if (!job->ending) {
    job->crashes = 0;
    job->unsaved = *std::move(step->round);
    Save(job);
  }
}

void JobRounds::OnTrouble(RunningJob* job, const absl::Status& trouble) {
  EndSearch(std::move(job->search), executors_.search);
  const bool crashed = absl::IsAborted(trouble);
  if (crashed && job->crashes++ < kMostCrashes && !job->ending) {
    Rebuild(job);
    return;
  }
  endings_->End(job, JobState::kFailed, std::string(trouble.message()));
}

// Every round that was proposed is in the log: a search is asked for the next one afterwards.
void JobRounds::Rebuild(RunningJob* job) {
  auto rounds = std::make_shared<absl::StatusOr<std::vector<v1::SearchRound>>>(absl::UnknownError(""));
  ++job->under_way;
  executors_.read([rounds, id = job->id(), expected = job->active->num_rounds()](
                      TuningLog* log) { *rounds = ReadRounds(log, id, expected); },
                  [this, job, rounds] {
                    --job->under_way;
                    if (rounds->ok()) {
                      job->active->ForgetTold();
                      BuildSearch(job, **std::move(rounds));
                    } else {
                      OnTrouble(job, rounds->status());
                    }
                    advance_(job);
                  });
}

void JobRounds::Save(RunningJob* job) {
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

void JobRounds::OnSaved(RunningJob* job, const absl::Status& status) {
  if (job->ending) return;  // meanwhile
  if (IsPassing(status)) {
    job->retry_at = time_->Seconds() + kRetrySeconds;
    return;
  }
  if (!status.ok()) return endings_->End(job, JobState::kFailed, std::string(status.message()));
  const v1::SearchRound& round = *job->unsaved;
  job->active->AddRound(round.task(), round.state());
  for (int i = 0; i < round.traces_size(); ++i) {
    const TrialId id{job->id(), round.task(), round.generation(), static_cast<uint32_t>(i)};
    queue_->Add({.name = TrialName(id),
                 .job = job->id(),
                 .target = job->active->plan().tasks[round.task()].key.target,
                 .task = round.task(),
                 .trace = round.traces(i)});
  }
  job->unsaved.reset();
  job->Touch();
}

}  // namespace mycc
