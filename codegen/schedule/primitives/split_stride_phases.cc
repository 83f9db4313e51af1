// split_stride_phases(B): splits a transposed convolution by the phases of its stride, so that each output
// uses only the taps of its phase (codegen/schedule/stride_phases.h).
//
//   for i: for r in 4:
//     B: y[i] += select((i + 1 - r) % 2 == 0 && .., x[(i + 1 - r) // 2], 0.0) * w[r]
//   ->
//   for u: B.in: t1.in[u] = select(.., x[u-1], 0.0)
//   for i: for r in 2:
//     B: y[i] += t1.in[i//2 - r + (i%2 + 1)//2 + 1] * w[r*2 + (i%2 + 1)%2]
#include "base/status.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/stages.h"
#include "codegen/schedule/stride_phases.h"

namespace mycc {

absl::StatusOr<Function> SplitStridePhases(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Stage stage, StageOf(function, args.Name(0)));
  const std::optional<Phases> phases = FindStridePhases(stage);
  if (!phases) {
    return Refusal(args.Name(0),
                   " is not a sum of select((i + p - r) % f == 0 && .., x[(i + p - r) // f], 0) * w[r] ",
                   "whose axis and taps f divides");
  }
  return ReplaceByStages(function, args.Name(0), {phases->input, phases->sum});
}

}  // namespace mycc
