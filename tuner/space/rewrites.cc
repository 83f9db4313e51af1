#include "tuner/space/rewrites.h"

#include <algorithm>
#include <utility>

#include "codegen/schedule/flipped_sign.h"
#include "codegen/schedule/stride_phases.h"
#include "tuner/space/cpu_products.h"
#include "tuner/space/part.h"

namespace mycc {
namespace {

// Every stage that is put in the place of another one ends in one that writes its tensor.
using Replacement = std::vector<Stage>;

// `replace` gives the stages in the place of number s; none: it stays.
template <typename ReplaceFn>
Workload Replaced(const Workload& workload, const ReplaceFn& replace) {
  Workload result = workload;
  result.stages.clear();
  for (int s = 0; s < static_cast<int>(workload.stages.size()); ++s) {
    Replacement stages = replace(s);
    if (stages.empty()) stages = {workload.stages[s]};
    result.stages.insert(result.stages.end(), stages.begin(), stages.end());
  }
  return result;
}

Workload WithPhases(const Workload& workload, TraceBuilder* steps) {
  return Replaced(workload, [&](int s) -> Replacement {
    const std::optional<Phases> phases = FindStridePhases(workload.stages[s]);
    if (!phases) return {};
    steps->SplitStridePhases(workload.stages[s].output->name);
    return {phases->input, phases->sum};
  });
}

Workload WithFlippedSigns(const Workload& workload, const Target& target, TraceBuilder* steps) {
  const Anatomy anatomy(workload);
  return Replaced(workload, [&](int s) -> Replacement {
    const std::optional<Contraction>& contraction = anatomy.info(s).contraction;
    const Buffer changed = contraction ? SignToChange(*contraction, anatomy.product(s), target) : nullptr;
    if (changed == nullptr) return {};
    absl::StatusOr<std::vector<Stage>> stages = FlippedSignStages(workload.stages[s], changed);
    if (!stages.ok()) return {};
    steps->FlipSign(anatomy.name(s), changed->name);
    return *std::move(stages);
  });
}

}  // namespace

Rewritten RewriteForCpu(const Workload& canonical, const Target& target) {
  if (target.kind != TargetKind::kCpu) return {canonical, {}};
  TraceBuilder steps;
  Workload workload = WithFlippedSigns(WithPhases(canonical, &steps), target, &steps);
  return {std::move(workload), std::move(steps.steps)};
}

}  // namespace mycc
