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
  // A dimension of global memory as the engine steps through it: its indices are 0 to size - 1, `stride`
  // elements apart, and those of the box are begin, begin + step, ..
  struct Dim {
    Expr begin;
    int64_t extent, step, size, stride;
  };

  Buffer global, shared;
  bool to_shared = false;
  // Outermost first, in the order of the tile; the last one's elements are neighbours. They are those of
  // `global`, but for a dimension along which several loops step (the pixels and taps of a window): that one
  // has a dimension for each of these loops, whose elements overlap.
  std::vector<Dim> dims;
  std::vector<Expr> shared_prefix;  // leading indices of `shared` (a ring's slot)
};

// `body` is a Copy's: a nest of loops around one store. FailedPrecondition when the copy engine cannot
// execute it: irregular steps, a different order of dimensions, rows that are not 16-byte aligned, or a
// condition that fails within the tensor (outside of it the engine reads zeros and writes nothing).
absl::StatusOr<BulkBox> BulkBoxOf(const Stmt& body);

// The bytes that one such copy moves.
int64_t BytesOfBox(const BulkBox& box);

}  // namespace mycc
