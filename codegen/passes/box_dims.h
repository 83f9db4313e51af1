// The dimensions of global memory that a copy's loops step through, as the copy engine can: each with one
// loop (cuTensorMapEncodeTiled: at most 5, boxes of at most 256 elements, strides that may be smaller than
// what they step over). Pure. For bulk_box.cc only.
//
//   for j in 8: for e in 64: .. = x[j + e // 16, e % 16]     ->     j: 8 of x, 16 elements apart
//                                                                   e: 64 neighbours
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/stmt.h"
#include "codegen/passes/bulk_box.h"

namespace mycc {

struct LoopDim {
  const For* loop = nullptr;  // null: one element
  BulkBox::Dim dim;
  bool is_window = false;  // other loops step along the same memory, and its elements overlap
  // Set by bulk_box.cc.
  Expr place;             // of the loop's element in the dimension: beyond its ends nothing is copied
  bool has_edge = false;  // a condition of the copy is an edge of the dimension
};

// In the order of the tensor's dimensions. FailedPrecondition when a loop does not step evenly, or through
// two dimensions. `loops` are the copy's, outermost first.
absl::StatusOr<std::vector<LoopDim>> DimsAlongLoops(const std::vector<const For*>& loops,
                                                    const std::vector<Expr>& indices,
                                                    const BufferNode& global);

// The box's dimensions. Those with a loop stand in the order of the loops; one without a loop keeps its
// place.
std::vector<BulkBox::Dim> InOrderOf(const std::vector<const For*>& loops, const std::vector<LoopDim>& dims);

}  // namespace mycc
