// The rules for a single stage, which the parser (adding positions in the text) and Validate share. Thread
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

// "" when a shape is legal: extents that are not negative, rank and number of elements within limits.h.
std::string ShapeProblem(const std::vector<int64_t>& shape);

// "" when a word can name a workload, a tensor or an axis.
std::string NameProblem(const std::string& name);

// Levels of an expression.
int DepthOf(const Expr& expr);

// The first rule that a stage breaks: names, shapes, types, reductions, limits, reads. `readable` holds what
// it may read.
std::optional<StageProblem> CheckStage(const Stage& stage,
                                       const std::unordered_set<const BufferNode*>& readable);

}  // namespace mycc
