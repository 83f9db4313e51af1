// A job's search, from what the log keeps of it: the tuner's campaign with a strategy and a scorer for each
// task. Built again from the same bytes, the same rounds and the same outcomes, it continues as if nothing
// had happened. Thread rule: thread-compatible; the server calls it on its search thread alone.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job_state.pb.h"
#include "server/job_plan.h"
#include "tuner/cost/learner.h"
#include "tuner/cost/schedule_scorer.h"
#include "tuner/scheduler/campaign.h"

namespace mycc {

// One generation of a task, with what the log keeps of it. `task` counts the job's tasks.
struct SearchRound {
  uint32_t task = 0;
  uint32_t generation = 0;
  std::vector<Candidate> candidates;
};

// The bytes that JobSearch::Restore takes back.
v1::SearchState::Generation StateOf(const SearchRound& round);

// Learners' bytes by ModelKind.
using ModelBytes = std::map<std::string, std::string>;

class JobSearch {
 public:
  // `stored` has one entry for each task; `models` are bytes of an earlier job's Models(), which it starts
  // from. FailedPrecondition when no task is left to search.
  static absl::StatusOr<std::unique_ptr<JobSearch>> Create(const v1::StoredJob& job,
                                                           const std::vector<PlannedTask>& tasks,
                                                           const std::vector<v1::StoredTask>& stored,
                                                           const ModelBytes& models);

  // The next round; nullopt when there is none, see stop_reason(). REQUIRES: all outcomes of the rounds
  // before the latest were told.
  absl::StatusOr<std::optional<SearchRound>> Next(double elapsed_seconds);
  absl::Status Tell(uint32_t task, const std::vector<Outcome>& outcomes);
  // A recorded round in place of Next. FailedPrecondition when this build's spaces no longer hold it.
  absl::Status Restore(uint32_t task, const std::vector<std::string>& traces,
                       const v1::SearchState::Generation& recorded);

  std::optional<StopReason> stop_reason() const { return campaign_->stop_reason(); }
  // What this job and those before it taught, for the next one; without what nothing was learned about.
  ModelBytes Models();

 private:
  JobSearch() = default;

  // The campaign's, as indices of the job's: without those that the log already satisfies.
  std::vector<uint32_t> tasks_;
  std::vector<int> index_of_;                // the other way; -1: not searched
  std::map<std::string, Learner> learners_;  // by kind of model
  // Of the campaign's tasks.
  std::vector<Learner*> learner_of_;
  std::vector<std::unique_ptr<ScheduleScorer>> scorers_;
  std::unique_ptr<Campaign> campaign_;
};

}  // namespace mycc
