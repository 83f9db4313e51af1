// The interface of a job's search, in this process (local_search.h) or in a process of its own
// (search_process.h). With the same models, proposals, windows and outcomes, a new search continues as the
// old one would have. Thread rule: thread-compatible; calls take seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job_state.pb.h"
#include "proto/search.pb.h"
#include "server/job_plan.h"
#include "tuner/scheduler/task_scheduler.h"
#include "tuner/search/search_ledger.h"

namespace mycc {

// Learners' bytes by ModelKind (tuner/cost/model_kind.h).
using ModelBytes = std::map<std::string, std::string>;
// By task of the job.
using TaskOutcomes = std::map<uint32_t, std::vector<Outcome>>;

// The next proposal, or why there is none.
struct SearchStep {
  std::optional<v1::Proposal> proposal;
  std::optional<StopReason> stop_reason;
};

class JobSearch {
 public:
  virtual ~JobSearch() = default;

  // Tells what was measured since the last call, and asks for the next proposal. `window`: the trials that
  // the farm can have in flight for the job; it is recorded in the proposal's state. REQUIRES: all outcomes
  // that a proposal with this window depends on were told (tuner/scheduler/proposal_window.h). Aborted: the
  // search is gone, and the message says how; it may be begun again.
  virtual absl::StatusOr<SearchStep> Next(const TaskOutcomes& outcomes, double elapsed_seconds,
                                          uint32_t window) = 0;
  // The models that this job and those before it taught, for the next job; none of a kind that nothing was
  // learned about. Aborted as above.
  virtual absl::StatusOr<ModelBytes> Models() = 0;
};

// All that a search depends on, besides the outcomes.
struct SearchStart {
  // They outlive the start, not the search.
  const v1::StoredJob* job = nullptr;
  const std::vector<PlannedTask>* tasks = nullptr;
  const std::vector<v1::StoredTask>* stored_tasks = nullptr;  // one for each task
  ModelBytes models;                                          // of an earlier job, which it starts from
  std::vector<v1::Proposal> proposals;                        // that were proposed before, in order
};
// FailedPrecondition when no task is left to search; OutOfRange when this build's spaces no longer hold a
// proposal; Aborted as JobSearch has it.
using StartSearch = std::function<absl::StatusOr<std::unique_ptr<JobSearch>>(const SearchStart&)>;

}  // namespace mycc
