// Describes a copy between global and shared memory as a box, as the copy engine takes it (TMA,
// cuTensorMapEncodeTiled). The pass that chooses bulk copies and the back end that emits them share it.
// Pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/stmt.h"

namespace mycc {

struct BulkBox {
  Buffer global, shared;
  bool to_shared = false;
  // For each dimension of `global`: where the box begins, how many elements it has, and their distance.
  std::vector<Expr> begin;
  std::vector<int64_t> extent, step;
  std::vector<Expr> shared_prefix;  // indices of `shared` before the tile's (a ring's slot)
};

// `body` is a Copy's: a nest of loops around one store. FailedPrecondition says why the copy engine cannot do
// it: steps that are not regular, an order of dimensions that differs, rows that are not 16-byte aligned, a
// condition that is not the tensor's own edge (beyond which the engine reads zero and writes nothing).
absl::StatusOr<BulkBox> BulkBoxOf(const Stmt& body);

}  // namespace mycc
