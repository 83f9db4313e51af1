#include "tuner/cost/schedule_scorer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace mycc {

ScheduleScorer::ScheduleScorer(Workload canonical, const Target& target, std::string group, Learner* learner,
                               std::shared_ptr<AppraisalMemo> memo, const std::optional<Machine>& machine)
    : workload_(std::move(canonical)),
      target_(target),
      machine_(machine ? *machine : Machine(target)),
      group_(std::move(group)),
      memo_key_(absl::StrCat(group_, "\n", PrintTarget(target), "\n", FiguresText(machine_))),
      learner_(learner),
      memo_(std::move(memo)) {}

absl::StatusOr<Appraisal> ScheduleScorer::Known(const Trace& trace) {
  const std::string key = absl::StrCat(memo_key_, "\n", StepsKey(trace));
  if (const absl::StatusOr<Appraisal>* known = memo_->Find(key)) return *known;
  absl::StatusOr<Appraisal> appraisal = Appraise(workload_, target_, machine_, trace);
  memo_->Put(key, appraisal);
  return appraisal;
}

std::vector<absl::StatusOr<Prediction>> ScheduleScorer::Score(const std::vector<const Trace*>& traces) {
  std::vector<absl::StatusOr<Prediction>> predictions(traces.size(), absl::UnknownError("not predicted"));
  std::vector<Features> features;
  std::vector<size_t> rows;
  for (size_t i = 0; i < traces.size(); ++i) {
    const absl::StatusOr<Appraisal> appraisal = Known(*traces[i]);
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
    prediction.log_spread = (*corrections)[r].log_spread;
  }
  return predictions;
}

absl::StatusOr<std::string> ScheduleScorer::CodeOf(const Trace& trace) {
  return CodeDigest(workload_, target_, trace);
}

std::vector<Sample> ScheduleScorer::SamplesOf(const std::vector<SearchLedger::Entry>& generation) {
  std::vector<Sample> samples;
  for (const SearchLedger::Entry& entry : generation) {
    const absl::StatusOr<Trace> trace = ParseTrace(entry.candidate.trace);
    if (!trace.ok() || !entry.outcome || entry.outcome->given_up()) continue;
    const absl::StatusOr<Appraisal> appraisal = Known(*trace);
    if (!appraisal.ok()) continue;
    samples.push_back({appraisal->features, appraisal->analytic_seconds, entry.outcome->seconds, group_});
  }
  return samples;
}

}  // namespace mycc
