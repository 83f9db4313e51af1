#include "tuner/space/rewrites.h"

#include <algorithm>
#include <utility>

#include "codegen/schedule/flipped_sign.h"
#include "codegen/schedule/operand_stage.h"
#include "codegen/schedule/stride_phases.h"
#include "tuner/space/cpu_products.h"
#include "tuner/space/part.h"
#include "tuner/space/stream_chain.h"

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

// The stages for a factor that is computed from earlier ones.
Replacement OperandStagesOf(const Workload& workload, const Stage& stage, TraceBuilder* steps) {
  for (const int factor : {0, 1}) {
    if (!IsComputedFactor(stage, factor)) continue;
    const std::vector<const ExprNode*> loads = LoadsOf(stage.value->args[factor]);
    const bool is_computed = std::any_of(loads.begin(), loads.end(), [&](const ExprNode* load) {
      return std::any_of(workload.stages.begin(), workload.stages.end(),
                         [&](const Stage& other) { return other.output == load->buffer; });
    });
    absl::StatusOr<std::vector<Stage>> stages = OperandStages(stage, factor);
    if (!is_computed || !stages.ok()) continue;
    steps->OperandStage(stage.output->name, factor);
    return *std::move(stages);
  }
  return {};
}

}  // namespace

Rewritten WithOperandStages(const Rewritten& rewritten) {
  TraceBuilder steps;
  steps.steps = rewritten.steps;
  const Workload& workload = rewritten.workload;
  Workload result = Replaced(workload, [&](int s) -> Replacement {
    TraceBuilder own;
    Replacement stages = OperandStagesOf(workload, workload.stages[s], &own);
    if (stages.empty()) return {};
    const Anatomy with(Replaced(workload, [&](int other) { return other == s ? stages : Replacement(); }));
    if (!FindStreamChain(with, s + 1)) return {};
    steps.steps.insert(steps.steps.end(), own.steps.begin(), own.steps.end());
    return stages;
  });
  return {std::move(result), std::move(steps.steps)};
}

Rewritten RewriteForCpu(const Workload& canonical, const Target& target) {
  if (target.kind != TargetKind::kCpu) return {canonical, {}};
  TraceBuilder steps;
  Workload workload = WithFlippedSigns(WithPhases(canonical, &steps), target, &steps);
  return {std::move(workload), std::move(steps.steps)};
}

}  // namespace mycc
