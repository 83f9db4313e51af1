// Perfect nests of loops around one store each: what fragment_loops.cc divides among threads. Pure.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "codegen/ir/stmt.h"

namespace mycc {

// Serial loops of constant extents, and conditions, around one store.
struct FragmentNest {
  std::vector<const For*> loops;  // outermost first
  std::vector<Expr> conditions;   // all must hold
  const Store* store;

  // Every element that is stored or loaded, in values, indices and conditions.
  void ForEachAccess(
      const std::function<void(const Buffer& buffer, const std::vector<Expr>& indices)>& visit) const;
};

// The nests that a loop consists of when each statement in it gets loops of its own, in order; none when
// there is other code in it. The pointers are into `root`.
std::vector<FragmentNest> NestsOf(const Stmt& root);

// FailedPrecondition unless the nests may run one after the other instead of in common loops: what one writes
// and another touches must have the common loops' variables as indices, so that iterations share no element.
absl::Status CheckSeparable(const std::vector<FragmentNest>& nests);

}  // namespace mycc
