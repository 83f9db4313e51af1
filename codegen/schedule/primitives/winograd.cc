// winograd(B, m): turns a convolution of 3 x 3 windows that move by 1 into Winograd's F(m x m, 3 x 3): the
// stages of workload/winograd.h, each under its own naive loops. B keeps its name and computes the same
// tensor from tiles of m x m outputs; the new blocks' names begin with B's. Stages that depend only on a
// const filter are computed ahead of time.
//
//   for i, j, k: for r, s, c:                  for xi, nu, c, k: B.u: B.u[xi, nu, c, k] = .. w ..
//     B: t2[i, j, k] += x[i + r, j + s, c]     for xi, nu, t, c: B.v: B.v[xi, nu, t, c] = .. x ..
//                       * w[k, c, r, s]    ->  for xi, nu, t, k: for c: B.m:
//                                                B.m[xi, nu, t, k] += B.v[xi, nu, t, c] * B.u[xi, nu, c, k]
//                                              for i, j, k: B: t2[i, j, k] = .. B.m[.., i//m*J + j//m, k] ..
#include "codegen/workload/winograd.h"

#include "absl/strings/match.h"
#include "base/status.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/stages.h"

namespace mycc {
absl::StatusOr<Function> Winograd(const Function& function, const Target& target, const StepArgs& args) {
  if (target.direct_sums) return Refusal("the target is sums=direct, which forbids Winograd");
  MYCC_ASSIGN_OR_RETURN(const Stage conv, StageOf(function, args.Name(0)));
  const int64_t m = args.Int(1);
  if (m != 2 && m != 4) return Refusal("tiles of ", m, " x ", m, "; expected 2 or 4");
  MYCC_ASSIGN_OR_RETURN(const WinogradShape shape, WinogradShapeOf(conv));
  const std::vector<Stage> stages = WinogradStages(conv, shape, static_cast<int>(m));
  MYCC_ASSIGN_OR_RETURN(Function result, ReplaceByStages(function, args.Name(0), stages));
  for (const Stage& stage : stages) {
    if (absl::EndsWith(stage.output->name, kWinogradFilter)) result = PackedIfKnown(result, stage.output);
  }
  return result;
}

}  // namespace mycc
