// The algebra behind reduce_together: a reduction, and a sum over the same axis that uses its result, as one
// reduction of tuples. Pure functions.
//
// The facts; f is a function of the axis, and everything else is refused in words:
//
//   m = max f, l = sum exp(s * (f - m)), s > 0, or with min and s < 0:
//     (l, m) of two parts: the larger m; the l of the other part is scaled by exp(-|s| * |m - m'|)
//   t = sum f, q = sum (f - t/n)^2, n the length of the axis:
//     (q, t, n) of two parts: sums of each, and q grows by (t' * n - t * n')^2 / (n * n' * (n + n'))
//
// The first is the online softmax (Milakov and Gimelshein, 2018), the second the pairwise update of Chan,
// Golub and LeVeque (1979); with one new term it is Welford's (1962). Both hold for parts of any
// size, so lanes, threads, and partial reductions merge by the same function.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "codegen/ir/stmt.h"

namespace mycc {

struct JointReduction {
  Reduction reduce;
  // Over the second reduction's iteration variables: the parts of a term, first that of the second reduction,
  // then that of the first, then what only the merge needs.
  std::vector<Expr> values;
};

// `value` is what the second reduction sums, with everything that depends on `result` written out; `f` is
// what the first reduces. Both are over the same variables; the axis has `terms` elements. FailedPrecondition
// says which fact was expected.
absl::StatusOr<JointReduction> JoinReductions(const Reduction& first, const Buffer& result, const Expr& f,
                                              const Expr& value, int64_t terms);

}  // namespace mycc
