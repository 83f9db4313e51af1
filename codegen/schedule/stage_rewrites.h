// Small rewrites of one stage as others, for primitives/replace_stages.cc and the rules. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/workload/workload.h"

namespace mycc {

// Whether the stage reduces along axes that have one element each, such as the sum of a row of one element.
// False for argmax and argmin.
bool HasSingleTerm(const Stage& stage);

// The stage whose value is the only term, without a reduction; for a sum of floats, 0 plus it, which turns -0
// into 0. REQUIRES: HasSingleTerm.
Stage SingleTermStage(const Stage& stage);

// The stage's tensor with its dimensions in another order, and a copy that has them as before. Dimension d of
// the new tensor is dimension order[d] of the old one. FailedPrecondition unless `order` has each dimension
// once.
//
//   t2[i,j] = sum[k](..)     ->     t2.p[j,i] = sum[k](..)
//                                   t2[i,j] = t2.p[j,i]
absl::StatusOr<std::vector<Stage>> PermutedStages(const Stage& stage, const std::vector<int64_t>& order);

// A stage of its own for a value, and the value's element there.
struct ValueStage {
  Stage stage;
  Expr load;  // over the axes of the value
};
// The tensor's dimensions are the axes that the value uses, in order.
ValueStage StageOfValue(const std::string& tensor, const Expr& value, const std::vector<Var>& axes);

// Whether the factor (0: left, 1: right) of a sum of products is more than a load, possibly cast.
bool IsComputedFactor(const Stage& stage, int factor);

// A factor of a sum of products as a stage of its own, and the sum: what is multiplied then is a tensor, of
// the type that the factor was rounded to.
//
//   t2[i,j] = sum[k](f32(bf16(exp(t0[i,k]))) * f32(t1[k,j]))
//     ->
//   t2.a[i,k]: bf16 = bf16(exp(t0[i,k]))
//   t2[i,j] = sum[k](f32(t2.a[i,k]) * f32(t1[k,j]))
//
// The new tensor is called after the sum, with .a or .b; its dimensions are the sum's axes that the factor
// depends on, in the order of the first load that has all of them, or else those of the reduction last.
// FailedPrecondition when the stage is no sum of products, or the factor is a load already.
absl::StatusOr<std::vector<Stage>> OperandStages(const Stage& stage, int factor);

// Suffixes of the names that FlippedSignStages gives its stages, after the sum's own name.
inline constexpr char kChangedSign[] = ".sign";       // the operand with its sign flipped
inline constexpr char kSignSums[] = ".sums";          // the correction of each sum
inline constexpr char kFlippedProduct[] = ".unlike";  // sums of products

// A sum of products of two i8, or of two u8, as a sum of u8 times i8, the only pairing that some processors
// multiply (vpdpbusd). For y[i,j] = sum[k](i32(a[i,k]) * i32(b[k,j])) of i8, when the sign of a is changed:
//
//   y.sign[i,k] = u8(a[i,k] - 128)                        a + 128: its sign bit flipped
//   y.sums[j] = sum[k](i32(b[k,j]) * -128)
//   y.unlike[i,j] = sum[k](i32(y.sign[i,k]) * i32(b[k,j]))
//   y[i,j] = y.unlike[i,j] + y.sums[j]
//
// For u8, i8(a + 128) is a - 128, and y.sums adds up 128 * b. The result is exact, because everything is
// modulo 2^32. Zeros that pad a become 128 like its other zeros.
//
// FailedPrecondition, with the reason, unless the stage is such a sum over two tensors of the same type.
absl::StatusOr<std::vector<Stage>> FlippedSignStages(const Stage& stage, const Buffer& changed);

}  // namespace mycc
