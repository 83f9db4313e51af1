// The scorer of a search: replays a trace on its workload, checks limits, computes features and the analytic
// time, and has them corrected by what was learned. Thread rule: thread-compatible.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tuner/cost/learner.h"
#include "tuner/cost/sample.h"
#include "tuner/search/strategy.h"

namespace mycc {

// A replayed candidate, ready for prediction.
struct Appraisal {
  Features features;
  double analytic_seconds = 0;
};
// FailedPrecondition when the trace does not replay, ResourceExhausted when a limit of the target is
// exceeded.
absl::StatusOr<Appraisal> Appraise(const Workload& canonical, const Target& target, const Trace& trace);

class ScheduleScorer : public Scorer {
 public:
  // `group`: the task's name among the samples. `learner` outlives the scorer and may learn between calls;
  // null: analytic alone.
  ScheduleScorer(Workload canonical, const Target& target, std::string group, Learner* learner);

  std::vector<absl::StatusOr<Prediction>> Score(const std::vector<const Trace*>& traces) override;

  // What a generation teaches, once its outcomes are known. Candidates whose trace no longer replays teach
  // nothing.
  std::vector<Sample> SamplesOf(const std::vector<Ledger::Entry>& generation);

 private:
  const absl::StatusOr<Appraisal>& Known(const Trace& trace);

  const Workload workload_;
  const Target target_;
  const std::string group_;
  Learner* const learner_;
  absl::flat_hash_map<std::string, absl::StatusOr<Appraisal>> known_;  // a memo, emptied when it is full
};

}  // namespace mycc
