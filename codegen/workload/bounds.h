// Proves that a stage's reads stay inside their tensors, from the ranges of axes and the conditions of the
// enclosing selects. Thread rule: pure functions.
#pragma once

#include <optional>
#include <string>

#include "codegen/workload/workload.h"

namespace mycc {

// An error in a stage, and the read and dimension it is about (nullptr and -1 when it is about
// neither).
struct StageProblem {
  std::string message;
  const ExprNode* read = nullptr;
  int dimension = -1;
};

// The first read that is not quasi-affine or not provably inside its tensor. A read in an arm of a select
// need only be inside where the condition sends evaluation to that arm; conditions are understood when they
// compare affine expressions of axes, joined by && || !.
std::optional<StageProblem> FindBadRead(const Stage& stage);

}  // namespace mycc
