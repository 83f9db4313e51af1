#include "tuner/cost/schedule_scorer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace mycc {

ScheduleScorer::ScheduleScorer(Workload canonical, const Target& target, std::string group, Learner* learner,
                               std::shared_ptr<Appraiser> appraiser, const std::optional<Machine>& machine)
    : workload_(std::move(canonical)),
      target_(target),
      machine_(machine ? *machine : Machine(target)),
      group_(std::move(group)),
      task_name_(absl::StrCat(group_, "\n", PrintTarget(target), "\n", FiguresText(machine_))),
      learner_(learner),
      appraiser_(std::move(appraiser)) {}

std::vector<absl::StatusOr<Prediction>> ScheduleScorer::Score(const std::vector<const Trace*>& traces) {
  std::vector<absl::StatusOr<Prediction>> predictions(traces.size(), absl::UnknownError("not predicted"));
  const std::vector<absl::StatusOr<Appraisal>> appraisals =
      appraiser_->Appraise(task_name_, workload_, target_, machine_, traces);
  std::vector<const Features*> features;
  std::vector<size_t> rows;
  for (size_t i = 0; i < traces.size(); ++i) {
    if (!appraisals[i].ok()) {
      predictions[i] = appraisals[i].status();
      continue;
    }
    predictions[i] = Prediction{appraisals[i]->analytic_seconds, appraisals[i]->analytic_seconds, 0};
    features.push_back(&appraisals[i]->features);
    rows.push_back(i);
  }
  if (learner_ == nullptr || rows.empty()) return predictions;
  const absl::Status updated = learner_->Update(group_);
  MYCC_CHECK(updated.ok()) << updated;
  const auto corrections = learner_->Predict(features, group_);
  MYCC_CHECK(corrections.ok()) << corrections.status();
  for (size_t r = 0; r < rows.size(); ++r) {
    Prediction& prediction = *predictions[rows[r]];
    prediction.seconds *= (*corrections)[r].factor;
    prediction.failure_probability = (*corrections)[r].failure_probability;
    prediction.model = learner_->version();
    prediction.log_spread = (*corrections)[r].log_spread;
  }
  return predictions;
}

std::vector<absl::StatusOr<std::string>> ScheduleScorer::CodesOf(const std::vector<const Trace*>& traces) {
  return appraiser_->CodesOf(task_name_, workload_, target_, traces);
}

std::vector<Sample> ScheduleScorer::SamplesOf(const std::vector<SearchLedger::Entry>& generation) {
  std::vector<Trace> traces;
  std::vector<const SearchLedger::Entry*> entries;
  for (const SearchLedger::Entry& entry : generation) {
    absl::StatusOr<Trace> trace = ParseTrace(entry.candidate.trace);
    if (!trace.ok() || !entry.outcome || entry.outcome->given_up()) continue;
    traces.push_back(*std::move(trace));
    entries.push_back(&entry);
  }
  std::vector<const Trace*> asked;
  for (const Trace& trace : traces) asked.push_back(&trace);
  std::vector<absl::StatusOr<Appraisal>> appraisals =
      appraiser_->Appraise(task_name_, workload_, target_, machine_, asked);
  std::vector<Sample> samples;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!appraisals[i].ok()) continue;
    samples.push_back({std::move(appraisals[i]->features), appraisals[i]->analytic_seconds,
                       entries[i]->outcome->seconds, group_});
  }
  return samples;
}

}  // namespace mycc
