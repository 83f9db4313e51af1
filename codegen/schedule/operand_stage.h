// Gives a factor of a sum of products a stage of its own: what is multiplied then is a tensor, of the type
// that the factor was rounded to. For the operand_stage primitive and the rules. Pure.
//
//   t2[i,j] = sum[k](f32(bf16(exp(t0[i,k]))) * f32(t1[k,j]))
//     ->
//   t2.a[i,k]: bf16 = bf16(exp(t0[i,k]))
//   t2[i,j] = sum[k](f32(t2.a[i,k]) * f32(t1[k,j]))
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "codegen/workload/workload.h"

namespace mycc {

// A stage of its own for a value, and the value's element there.
struct ValueStage {
  Stage stage;
  Expr load;  // over the axes of the value
};
// The tensor's dimensions are the axes that the value uses, in order.
ValueStage StageOfValue(const std::string& tensor, const Expr& value, const std::vector<Var>& axes);

// Whether the factor (0: left, 1: right) of a sum of products is more than a load, possibly cast.
bool IsComputedFactor(const Stage& stage, int factor);

// The factor's stage and the sum. The new tensor is called after the sum, with .a or .b; its dimensions are
// the sum's axes that the factor depends on, in the order of the first load that has all of them, or else
// those of the reduction last. FailedPrecondition when the stage
// is no sum of products, or the factor is a load already.
absl::StatusOr<std::vector<Stage>> OperandStages(const Stage& stage, int factor);

}  // namespace mycc
