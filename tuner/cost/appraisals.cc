#include "tuner/cost/appraisals.h"

#include <utility>

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

const absl::StatusOr<Appraisal>* AppraisalMemo::Find(const std::string& key) const {
  for (const Appraisals* half : {&young_, &old_}) {
    if (const auto found = half->find(key); found != half->end()) return &found->second;
  }
  return nullptr;
}

void AppraisalMemo::Put(const std::string& key, const absl::StatusOr<Appraisal>& appraisal) {
  if (2 * (young_.size() + 1) > capacity_) old_ = std::exchange(young_, {});
  young_.insert_or_assign(key, appraisal);
}

}  // namespace mycc
