// A job's search in this process: the tuner's campaign, with a strategy and a scorer for each task. Thread
// rule: thread-compatible.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/thread_team.h"
#include "server/job_search.h"
#include "tuner/cost/forest.h"
#include "tuner/cost/learner.h"
#include "tuner/cost/schedule_scorer.h"
#include "tuner/scheduler/campaign.h"

namespace mycc {

class LocalSearch final : public JobSearch {
 public:
  // See StartSearch.
  static absl::StatusOr<std::unique_ptr<JobSearch>> Start(const SearchStart& start);
  // The same in parts: a search without its proposals, and one recorded proposal after the other.
  static absl::StatusOr<std::unique_ptr<LocalSearch>> Create(const v1::StoredJob& job,
                                                             const std::vector<PlannedTask>& tasks,
                                                             const std::vector<v1::StoredTask>& stored,
                                                             const ModelBytes& models);
  absl::Status Restore(const v1::Proposal& recorded);
  // The number of threads that score and lower candidates and train models; 1 until this is called. Neither
  // proposals nor models depend on it.
  void SetThreads(int threads) { team_.SetWidth(threads); }

  absl::StatusOr<SearchStep> Next(const TaskOutcomes& outcomes, double elapsed_seconds,
                                  uint32_t window) override;
  absl::StatusOr<ModelBytes> Models() override;

 private:
  LocalSearch() = default;
  // The outcomes that the search knows of, as it numbers them: it began with the task's first generation
  // here.
  std::vector<Outcome> KnownOnes(uint32_t task, std::vector<Outcome> outcomes) const;
  // A proposal was proposed, now or before a restart: its model is where growth counts from.
  void OnProposed(const Proposal& proposal);

  ThreadTeam team_;
  // The campaign's, as indices of the job's: without those that the log already satisfies.
  std::vector<uint32_t> tasks_;
  std::vector<int> index_of_;                // the other way; -1: not searched
  std::vector<uint32_t> first_generation_;   // of each of the job's tasks
  std::map<std::string, Learner> learners_;  // by kind of model
  // One for each of the campaign's tasks.
  std::vector<Learner*> learner_of_;
  std::vector<std::unique_ptr<ScheduleScorer>> scorers_;
  Forest forest_;  // of Bayesian searches
  std::unique_ptr<Campaign> campaign_;
};

}  // namespace mycc
