// flip_sign(B, t0): turns a sum of products of two i8 tensors, or of two u8 tensors, into one of u8 times i8,
// by changing the type of operand t0 (codegen/schedule/flipped_sign.h). B keeps its name and writes the same
// tensor; the new blocks' names begin with B's.
//
//   for i, j: for k:                                for i, k: B.sign: B.sign[i,k] = u8(t0[i,k] - 128)
//     B: t2[i,j] += i32(t0[i,k]) * i32(t1[k,j])     for j: for k: B.sums: B.sums[j] += i32(t1[k,j]) * -128
//                                              ->   for i, j: for k: B.unlike: B.unlike[i,j] +=
//                                                                      i32(B.sign[i,k]) * i32(t1[k,j])
//                                                   for i, j: B: t2[i,j] = B.unlike[i,j] + B.sums[j]
#include "base/status.h"
#include "codegen/schedule/flipped_sign.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/stages.h"
#include "codegen/schedule/tree.h"

namespace mycc {

absl::StatusOr<Function> FlipSign(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Stage stage, StageOf(function, args.Name(0)));
  MYCC_ASSIGN_OR_RETURN(const Buffer changed, FindBuffer(function, args.Name(1)));
  MYCC_ASSIGN_OR_RETURN(const std::vector<Stage> stages, FlippedSignStages(stage, changed));
  return ReplaceByStages(function, args.Name(0), stages);
}

}  // namespace mycc
