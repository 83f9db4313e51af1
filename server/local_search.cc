#include "server/local_search.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/trace.h"
#include "server/refusal_counts.h"
#include "server/scheduler_terms.h"
#include "tuner/cost/machine_constants.h"
#include "tuner/cost/model_kind.h"
#include "tuner/search/strategy.h"

namespace mycc {
namespace {

// Traces of the history that still parse; the rest are of another time.
std::vector<Trace> ParseHistory(const v1::StoredTask& stored) {
  std::vector<Trace> history;
  for (const std::string& text : stored.history()) {
    absl::StatusOr<Trace> trace = ParseTrace(text);
    if (trace.ok()) history.push_back(*std::move(trace));
  }
  return history;
}

// A guess of a call's time by arithmetic and traffic, in units of the traffic: devices do about as many
// operations in the time of a byte.
double RoughCost(const Workload& workload) {
  constexpr double kFlopsAByte = 16;
  return CountBytes(workload) + CountFlops(workload) / kFlopsAByte;
}

SearchConfig StrategyOf(const v1::StoredJob& job, uint32_t task) {
  SearchConfig config;
  config.strategy = job.spec().strategy();
  config.seed = job.spec().seed() * 0x9e3779b97f4a7c15u + task;
  config.generation_size = static_cast<int>(job.generation_size());
  return config;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobSearch>> LocalSearch::Start(const SearchStart& start) {
  MYCC_ASSIGN_OR_RETURN(std::unique_ptr<LocalSearch> search,
                        Create(*start.job, *start.tasks, *start.stored_tasks, start.models));
  for (const v1::Proposal& proposal : start.proposals) MYCC_RETURN_IF_ERROR(search->Restore(proposal));
  return std::unique_ptr<JobSearch>(std::move(search));
}

absl::StatusOr<std::unique_ptr<LocalSearch>> LocalSearch::Create(const v1::StoredJob& job,
                                                                 const std::vector<PlannedTask>& tasks,
                                                                 const std::vector<v1::StoredTask>& stored,
                                                                 const ModelBytes& models) {
  std::unique_ptr<LocalSearch> search(new LocalSearch());
  search->index_of_.resize(tasks.size(), -1);
  search->first_generation_.resize(tasks.size(), 0);
  const auto appraiser = std::make_shared<Appraiser>(&search->team_);
  std::vector<CampaignTask> campaign_tasks;
  for (uint32_t task = 0; task < tasks.size(); ++task) {
    if (stored[task].reused() || !stored[task].measured_by().empty()) continue;
    const PlannedTask& planned = tasks[task];
    const auto [of_kind, is_new] =
        search->learners_.try_emplace(ModelKind(planned.target), ModelConfig(), &search->team_);
    Learner* const learner = &of_kind->second;
    // A model that this build cannot read is done without.
    if (const std::string* bytes = OfNearestKind(models, of_kind->first); is_new && bytes != nullptr)
      (void)learner->Load(*bytes, /*of_another_class=*/!models.contains(of_kind->first));
    search->learner_of_.push_back(learner);
    search->scorers_.push_back(std::make_unique<ScheduleScorer>(
        planned.workload, planned.target, planned.key.workload_hash, learner, appraiser,
        MeasuredMachine(planned.target, stored[task].constants())));
    CampaignTask entry;
    entry.info.weight = planned.weight;
    entry.info.flops = CountFlops(planned.workload);
    // A kernel that only another grouping launches begins after all others, with a short generation.
    entry.info.rough_cost = planned.count > 0 ? RoughCost(planned.workload) : 0;
    entry.info.family = planned.key.shape_erased_hash;
    entry.info.earlier_trials = stored[task].earlier_trials();
    entry.begin = [config = StrategyOf(job, task), planned, recalled = stored[task],
                   scorer = search->scorers_.back().get(), forest = &search->forest_] {
      std::vector<Sketch> sketches;
      if (config.strategy != kListedStrategy) sketches = GenerateSketches(planned.workload, planned.target);
      return MakeSearchStrategy(config, std::move(sketches), ParseHistory(recalled), scorer, forest);
    };
    search->index_of_[task] = static_cast<int>(campaign_tasks.size());
    search->first_generation_[task] = stored[task].first_generation();
    search->tasks_.push_back(task);
    campaign_tasks.push_back(std::move(entry));
  }
  if (campaign_tasks.empty())
    return absl::FailedPreconditionError("the log already has the results of the whole job");
  LocalSearch* const self = search.get();  // the campaign is its own
  search->campaign_ = std::make_unique<Campaign>(
      SchedulerOf(job, tasks), std::move(campaign_tasks),
      [self](int task, const std::vector<SearchLedger::Entry>& generation) {
        return self->learner_of_[task]->Add(self->scorers_[task]->SamplesOf(generation));
      });
  return search;
}

absl::StatusOr<SearchStep> LocalSearch::Next(const TaskOutcomes& outcomes, double elapsed_seconds,
                                             uint32_t window) {
  for (const auto& [task, of_task] : outcomes)
    MYCC_RETURN_IF_ERROR(campaign_->Tell(index_of_[task], KnownOnes(task, of_task)));
  MYCC_ASSIGN_OR_RETURN(const std::optional<Proposal> proposal, campaign_->Next(elapsed_seconds, window));
  if (!proposal) return SearchStep{std::nullopt, campaign_->stop_reason()};
  OnProposed(*proposal);
  v1::Proposal next;
  next.set_elapsed_seconds(elapsed_seconds);
  next.set_task(tasks_[proposal->task]);
  next.set_generation(first_generation_[next.task()] + proposal->candidates.front().generation);
  next.mutable_state()->set_window(window);
  for (const Candidate& proposed : proposal->candidates) {
    next.add_traces(proposed.trace);
    if (proposed.model) next.mutable_state()->set_model(*proposed.model);
    v1::SearchState::Candidate& candidate = *next.mutable_state()->add_candidates();
    if (proposed.predicted_seconds) candidate.set_predicted_seconds(*proposed.predicted_seconds);
    candidate.set_origin(static_cast<uint32_t>(proposed.origin));
  }
  RefusalCounts refused;
  for (const auto& [reason, points] : campaign_->refusals_of(proposal->task)) refused.Add(reason, points);
  for (const RefusalCount& kind : refused.MostFrequent()) {
    v1::SearchState::Generation::Refusal& refusal = *next.mutable_state()->add_refusals();
    refusal.set_reason(kind.reason);
    refusal.set_points(static_cast<uint32_t>(kind.points));
  }
  return SearchStep{std::move(next), std::nullopt};
}

std::vector<Outcome> LocalSearch::KnownOnes(uint32_t task, std::vector<Outcome> outcomes) const {
  const uint32_t first = first_generation_[task];
  std::erase_if(outcomes, [first](const Outcome& outcome) { return outcome.generation < first; });
  for (Outcome& outcome : outcomes) outcome.generation -= first;
  return outcomes;
}

absl::Status LocalSearch::Restore(const v1::Proposal& recorded) {
  const uint32_t task = recorded.task();
  if (task >= index_of_.size() || index_of_[task] < 0)
    return absl::FailedPreconditionError(absl::StrCat("the job does not search task ", task));
  if (recorded.generation() < first_generation_[task]) return absl::OkStatus();
  const int generation = campaign_->num_generations_of(index_of_[task]);
  const auto stale = [&](const std::string& why) {
    return absl::OutOfRangeError(
        absl::StrCat("this build searches other spaces than the one that began the job (task ", task,
                     ", generation ", first_generation_[task] + generation, ": ", why, ")"));
  };
  if (recorded.state().candidates_size() != recorded.traces_size()) return stale("its state is incomplete");
  Proposal proposal;
  proposal.task = index_of_[task];
  for (int i = 0; i < recorded.traces_size(); ++i) {
    Candidate candidate;
    candidate.generation = recorded.generation() - first_generation_[task];
    candidate.index = static_cast<uint32_t>(i);
    candidate.trace = recorded.traces(i);
    const v1::SearchState::Candidate& state = recorded.state().candidates(i);
    if (state.has_predicted_seconds()) candidate.predicted_seconds = state.predicted_seconds();
    if (recorded.state().has_model()) candidate.model = recorded.state().model();
    candidate.origin = static_cast<Origin>(state.origin());
    proposal.candidates.push_back(std::move(candidate));
  }
  const absl::Status restored =
      campaign_->Restore(proposal, recorded.elapsed_seconds(), recorded.state().window());
  if (!restored.ok()) return stale(std::string(restored.message()));
  OnProposed(proposal);
  return absl::OkStatus();
}

void LocalSearch::OnProposed(const Proposal& proposal) {
  if (const std::optional<uint64_t> model = proposal.candidates.front().model)
    learner_of_[proposal.task]->Proposed(*model);
}

absl::StatusOr<ModelBytes> LocalSearch::Models() {
  ModelBytes models;
  for (auto& [kind, learner] : learners_) {
    if (learner.num_samples() == 0) continue;
    // The next job starts from less when this fails, and that is all.
    if (absl::StatusOr<std::string> bytes = learner.Save(); bytes.ok()) models[kind] = *std::move(bytes);
  }
  return models;
}

}  // namespace mycc
