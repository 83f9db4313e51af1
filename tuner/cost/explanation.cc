#include "tuner/cost/explanation.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {

absl::StatusOr<Explanation> ExplainRatio(const std::vector<Sample>& samples, const Appraisal& first,
                                         const Appraisal& second) {
  const std::vector<FeatureSlot>& slots = FunctionFeatureSlots();
  if (first.features.size() != slots.size() || second.features.size() != slots.size()) {
    return absl::InvalidArgumentError(absl::StrCat("explaining rows of ", first.features.size(), " and ",
                                                   second.features.size(), " features; expected ",
                                                   slots.size()));
  }
  std::vector<const Sample*> rows;
  rows.reserve(samples.size());
  for (const Sample& sample : samples) rows.push_back(&sample);
  XgboostModel model;
  MYCC_RETURN_IF_ERROR(model.Train(rows));
  MYCC_ASSIGN_OR_RETURN(const std::vector<double> of_first, model.Contributions(first.features));
  MYCC_ASSIGN_OR_RETURN(const std::vector<double> of_second, model.Contributions(second.features));
  Explanation explanation;
  explanation.metrics = model.metrics();
  explanation.analytic_log_ratio = std::log(second.analytic_seconds / first.analytic_seconds);
  explanation.log_ratio = explanation.analytic_log_ratio;
  for (size_t i = 0; i < slots.size(); ++i) {
    const double share = of_second[i] - of_first[i];
    explanation.log_ratio += share;
    if (share != 0) explanation.shares.push_back({slots[i], first.features[i], second.features[i], share});
  }
  std::ranges::stable_sort(explanation.shares, [](const FeatureShare& a, const FeatureShare& b) {
    return std::abs(a.log_ratio) > std::abs(b.log_ratio);
  });
  return explanation;
}

}  // namespace mycc
