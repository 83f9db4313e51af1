// Proves that a stage's reads stay inside their tensors, from the ranges of axes and the conditions of the
// enclosing selects. Thread rule: pure functions.
#pragma once

#include <optional>
#include <string>

#include "codegen/workload/workload.h"

namespace mycc {

// An error in a stage, with the read and the dimension that it concerns (nullptr and -1: neither).
struct StageProblem {
  std::string message;
  const ExprNode* read = nullptr;
  int dimension = -1;
};

// The first read that is not quasi-affine or not provably inside its tensor. A read in an arm of a select
// must be inside only where the condition selects that arm. Conditions are used when they compare affine
// expressions of axes, joined by && || !.
std::optional<StageProblem> FindBadRead(const Stage& stage);

}  // namespace mycc
