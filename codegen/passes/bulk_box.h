// Describes a copy between global and shared memory as a box for the copy engine (TMA,
// cuTensorMapEncodeTiled). Used by the pass that chooses bulk copies and by the back end that emits them.
// Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/stmt.h"

namespace mycc {

struct BulkBox {
  Buffer global, shared;
  bool to_shared = false;
  // For each dimension of `global`: the box's first index, its number of elements, and their distance.
  std::vector<Expr> begin;
  std::vector<int64_t> extent, step;
  std::vector<Expr> shared_prefix;  // leading indices of `shared` (a ring's slot)
};

// `body` is a Copy's: a nest of loops around one store. FailedPrecondition when the copy engine cannot
// execute it: irregular steps, a different order of dimensions, rows that are not 16-byte aligned, or a
// condition that fails within the tensor (outside of it the engine reads zeros and writes nothing).
absl::StatusOr<BulkBox> BulkBoxOf(const Stmt& body);

// The bytes that one such copy moves.
int64_t BytesOfBox(const BulkBox& box);

}  // namespace mycc
