// Predicts a search's candidates: replays a trace, checks the target's limits, computes features and analytic
// time, and applies the learned correction. Thread rule: thread-compatible.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/cost/appraisals.h"
#include "tuner/cost/learner.h"
#include "tuner/cost/sample.h"
#include "tuner/search/scorer.h"
#include "tuner/search/search_ledger.h"

namespace mycc {

class ScheduleScorer : public Scorer {
 public:
  // `group`: the task's name among the samples. `learner` outlives the scorer and may learn between calls;
  // null: analytic alone. Scorers of other groups, targets and machines may share an appraiser. `machine`: of
  // the target, as a device was measured; none: with the figures of its family.
  ScheduleScorer(Workload canonical, const Target& target, std::string group, Learner* learner,
                 std::shared_ptr<Appraiser> appraiser = std::make_shared<Appraiser>(),
                 const std::optional<Machine>& machine = std::nullopt);

  std::vector<absl::StatusOr<Prediction>> Score(const std::vector<const Trace*>& traces) override;

  std::vector<absl::StatusOr<std::string>> CodesOf(const std::vector<const Trace*>& traces) override;

  // The samples of a generation, once its outcomes are known. Candidates whose trace no longer replays teach
  // nothing.
  std::vector<Sample> SamplesOf(const std::vector<SearchLedger::Entry>& generation);

 private:
  const Workload workload_;
  const Target target_;
  const Machine machine_;
  const std::string group_;
  const std::string task_name_;  // of the group, the target and the machine
  Learner* const learner_;
  const std::shared_ptr<Appraiser> appraiser_;
};

}  // namespace mycc
