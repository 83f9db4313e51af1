#include "server/job_rounds.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/names.h"

namespace mycc {

JobRounds::JobRounds(JobStore* store, ModelStore* models, LeaseQueue* queue, const TimeSource* time,
                     WriteExecutor write, SearchExecutor executor, JobEndings* endings, AdvanceJob advance)
    : store_(store),
      models_(models),
      queue_(queue),
      time_(time),
      write_(std::move(write)),
      executor_(std::move(executor)),
      endings_(endings),
      advance_(std::move(advance)) {}

void JobRounds::BuildSearch(RunningJob* job, std::function<absl::Status(JobSearch*)> restore) {
  struct Built {
    std::unique_ptr<JobSearch> search;
    absl::Status status;
  };
  auto built = std::make_shared<Built>();
  job->searching = true;
  // A job outlives its search work: it is not removed while it is searching.
  const ActiveJob* active = job->active.get();
  ModelBytes models;
  for (const std::string& id : active->stored().models()) {
    absl::StatusOr<StoredModel> model = models_->Load(id);
    if (!model.ok()) continue;
    job->model_ids[model->kind] = id;
    models[model->kind] = std::move(model->bytes);
  }
  executor_(
      [built, active, models = std::move(models), restore = std::move(restore)] {
        auto search =
            JobSearch::Create(active->stored(), active->plan().tasks, active->stored_tasks(), models);
        built->status = search.status();
        if (!search.ok()) return;
        built->search = *std::move(search);
        built->status = restore(built->search.get());
      },
      [this, job, built] {
        job->searching = false;
        job->search = std::move(built->search);
        if (!built->status.ok()) endings_->End(job, JobState::kFailed, std::string(built->status.message()));
        advance_(job);
      });
}

void JobRounds::Ask(RunningJob* job) {
  struct Asked {
    std::map<uint32_t, std::vector<Outcome>> outcomes;
    absl::StatusOr<std::optional<SearchRound>> round = absl::UnknownError("");
  };
  auto asked = std::make_shared<Asked>();
  asked->outcomes = job->active->TakeUntold();
  job->searching = true;
  executor_(
      [asked, search = job->search.get(), elapsed = job->Elapsed(time_->Seconds())] {
        for (const auto& [task, outcomes] : asked->outcomes) {
          if (const absl::Status told = search->Tell(task, outcomes); !told.ok()) {
            asked->round = told;
            return;
          }
        }
        asked->round = search->Next(elapsed);
      },
      [this, job, asked] { OnRound(job, std::move(asked->round)); });
}

void JobRounds::OnRound(RunningJob* job, absl::StatusOr<std::optional<SearchRound>> round) {
  job->searching = false;
  if (!round.ok()) {
    endings_->End(job, JobState::kFailed, absl::StrCat("the search failed: ", round.status().message()));
  } else if (!round->has_value()) {
    job->searched_out = true;
    // Trials in flight belong to the job, unless its time is over.
    if (job->search->stop_reason() == StopReason::kTime) endings_->EndAsSearched(job, StopReason::kTime);
  } else if (!job->ending) {
    job->unsaved = **std::move(round);
    Save(job);
  }
  advance_(job);
}

void JobRounds::Save(RunningJob* job) {
  const SearchRound& round = *job->unsaved;
  ActiveJob& active = *job->active;
  const PlannedTask& planned = active.plan().tasks[round.task];
  const v1::SearchState::Generation state = StateOf(round);
  Generation generation{.job = job->id(),
                        .task = round.task,
                        .generation = round.generation,
                        .round = active.num_rounds(),
                        .elapsed_seconds = job->Elapsed(time_->Seconds()),
                        .state = state.SerializeAsString(),
                        .trials = {}};
  for (const Candidate& candidate : round.candidates) {
    NewTrial& trial = generation.trials.emplace_back();
    trial.trace = candidate.trace;
    if (candidate.predicted_seconds) trial.provenance.set_predicted_score(1 / *candidate.predicted_seconds);
    trial.provenance.set_strategy(
        absl::StrCat(active.stored().spec().strategy(), "/", std::string(OriginName(candidate.origin))));
    trial.provenance.set_seed(active.stored().spec().seed());
    trial.provenance.set_model(job->model_ids[ModelKind(planned.target)]);
  }
  if (!store_->AddGeneration(generation).ok()) return;  // Tick tries again

  active.AddRound(round.task, state);
  for (const Candidate& candidate : round.candidates) {
    const TrialId id{job->id(), round.task, round.generation, candidate.index};
    queue_->Add({.name = TrialName(id),
                 .job = job->id(),
                 .target = planned.key.target,
                 .task = round.task,
                 .trace = candidate.trace});
  }
  job->unsaved.reset();
  job->Touch();
}

}  // namespace mycc
