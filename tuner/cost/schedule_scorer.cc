#include "tuner/cost/schedule_scorer.h"

#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "codegen/schedule/schedule.h"

namespace mycc {

absl::StatusOr<Appraisal> Appraise(const Workload& canonical, const Target& target, const Trace& trace) {
  MYCC_ASSIGN_OR_RETURN(const Schedule schedule, Replay(canonical, target, trace));
  const Machine machine(target);
  const FunctionNest nest = AnalyzeNest(schedule.function());
  MYCC_RETURN_IF_ERROR(CheckLimits(nest, machine));
  const Cost cost = EstimateCost(nest, machine);
  return Appraisal{FunctionFeatures(nest, cost, machine), cost.seconds};
}

ScheduleScorer::ScheduleScorer(Workload canonical, const Target& target, std::string group, Learner* learner)
    : workload_(std::move(canonical)), target_(target), group_(std::move(group)), learner_(learner) {}

const absl::StatusOr<Appraisal>& ScheduleScorer::Known(const Trace& trace) {
  const std::string key = StepsKey(trace);
  const auto it = known_.find(key);
  if (it != known_.end()) return it->second;
  return known_.emplace(key, Appraise(workload_, target_, trace)).first->second;
}

std::vector<absl::StatusOr<Prediction>> ScheduleScorer::Score(const std::vector<const Trace*>& traces) {
  constexpr size_t kMaxKnown = 4096;
  if (known_.size() > kMaxKnown) known_.clear();
  std::vector<absl::StatusOr<Prediction>> predictions(traces.size(), absl::UnknownError("not predicted"));
  std::vector<Features> features;
  std::vector<size_t> rows;
  for (size_t i = 0; i < traces.size(); ++i) {
    const absl::StatusOr<Appraisal>& appraisal = Known(*traces[i]);
    if (!appraisal.ok()) {
      predictions[i] = appraisal.status();
      continue;
    }
    predictions[i] = Prediction{appraisal->analytic_seconds, appraisal->analytic_seconds, 0};
    features.push_back(appraisal->features);
    rows.push_back(i);
  }
  if (learner_ == nullptr || rows.empty()) return predictions;
  std::vector<const Features*> pointers;
  for (const Features& row : features) pointers.push_back(&row);
  const absl::Status updated = learner_->Update(group_);
  MYCC_CHECK(updated.ok()) << updated;
  const auto corrections = learner_->Predict(pointers, group_);
  MYCC_CHECK(corrections.ok()) << corrections.status();
  for (size_t r = 0; r < rows.size(); ++r) {
    Prediction& prediction = *predictions[rows[r]];
    prediction.seconds *= (*corrections)[r].factor;
    prediction.failure_probability = (*corrections)[r].failure_probability;
    prediction.model = learner_->version();
  }
  return predictions;
}

std::vector<Sample> ScheduleScorer::SamplesOf(const std::vector<Ledger::Entry>& generation) {
  std::vector<Sample> samples;
  for (const Ledger::Entry& entry : generation) {
    const absl::StatusOr<Trace> trace = ParseTrace(entry.candidate.trace);
    if (!trace.ok() || !entry.outcome || entry.outcome->given_up()) continue;
    const absl::StatusOr<Appraisal>& appraisal = Known(*trace);
    if (!appraisal.ok()) continue;
    samples.push_back({appraisal->features, appraisal->analytic_seconds, entry.outcome->seconds, group_});
  }
  return samples;
}

}  // namespace mycc
