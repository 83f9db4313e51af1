// Why the cost model tells two schedules of a task apart: the shares of the features in the ratio of their
// predicted times, by a model that is trained on the task's own measured candidates. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tuner/cost/appraisals.h"
#include "tuner/cost/sample.h"
#include "tuner/cost/xgboost_model.h"

namespace mycc {

struct FeatureShare {
  FeatureSlot slot;
  float first = 0, second = 0;  // the feature's values
  double log_ratio = 0;         // what it adds to log(second's time / first's time)
};

struct Explanation {
  ModelMetrics metrics;
  double analytic_log_ratio = 0;     // log(second's analytic time / first's)
  double log_ratio = 0;              // the same of the predicted times: the analytic one and all shares
  std::vector<FeatureShare> shares;  // those that are not 0, the greatest first by amount
};

// `samples` are of one task. Without trees (metrics.trees is 0) no feature has a share: there are too few
// samples, or the correction orders them no better than the analytic times.
absl::StatusOr<Explanation> ExplainRatio(const std::vector<Sample>& samples, const Appraisal& first,
                                         const Appraisal& second);

}  // namespace mycc
