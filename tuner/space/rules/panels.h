// Packs a contraction's operands into panels, where the elements that one register tile reads are adjacent.
#pragma once

#include <string>

#include "tuner/space/rules/contraction_plan.h"

namespace mycc {

// The panel's dimension goes last as it is.
inline constexpr int64_t kWholePanel = 0;

// Panels with `size` rows or columns of the operand, along dimension `dim`, in which groups of `depth`
// elements of the innermost reduction lie together.
struct Panels {
  const Operand& operand;
  int dim;
  int64_t size;
  int64_t depth;
};

// Panels of const operands are made ahead of time, those of others where `loop` starts an iteration.
void EmitPanels(const ContractionPlan& plan, const Panels& panels, const std::string& loop, TraceBuilder* b);

}  // namespace mycc
