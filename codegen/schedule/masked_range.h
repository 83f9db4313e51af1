// The iterations of a loop in which every sum may get a term: masks of scores (select(c, x, -inf)) and zeros
// of weights leave some of its first and last iterations without any. For skip_masked. Pure.
#pragma once

#include "absl/status/statusor.h"
#include "codegen/schedule/tree.h"

namespace mycc {

// Iterations first <= l < end, over the loops around the loop. Without a bound `first` is 0 and `end` the
// loop's extent.
struct MaskedRange {
  Expr first, end;
};

// FailedPrecondition names a reduction that the loop carries and that masks do not empty.
absl::StatusOr<MaskedRange> RangeOfTerms(const Path& loop);

}  // namespace mycc
