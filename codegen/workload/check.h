// The rules for a single stage. The parser, which adds positions in the text, and Validate share them. Thread
// rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "codegen/workload/bounds.h"
#include "codegen/workload/workload.h"

namespace mycc {

// The error of a shape, or "": extents must not be negative, rank and number of elements must keep to
// limits.h.
std::string ShapeProblem(const std::vector<int64_t>& shape);

// The error of a name for a workload, a tensor or an axis, or "".
std::string NameProblem(const std::string& name);

// The number of levels of an expression.
int DepthOf(const Expr& expr);

// The first rule that a stage breaks: names, shapes, types, reductions, limits, reads. `readable`: the
// tensors that it may read.
std::optional<StageProblem> CheckStage(const Stage& stage, const BufferSet& readable);

}  // namespace mycc
