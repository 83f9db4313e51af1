// Rewrites sums of products of two i8, or of two u8, as sums of u8 times i8, the only pairing that some
// processors multiply (vpdpbusd). Pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "codegen/workload/workload.h"

namespace mycc {

// The names of the stages: the sum's own and one of these.
inline constexpr char kChangedSign[] = ".sign";       // the operand
inline constexpr char kSignSums[] = ".sums";          // what that changes in each sum
inline constexpr char kFlippedProduct[] = ".unlike";  // sums of products

// For y[i,j] = sum[k](i32(a[i,k]) * i32(b[k,j])) of i8, when the sign of a is changed:
//
//   y.sign[i,k] = u8(a[i,k] - 128)                        a + 128: its sign bit flipped
//   y.sums[j] = sum[k](i32(b[k,j]) * -128)
//   y.unlike[i,j] = sum[k](i32(y.sign[i,k]) * i32(b[k,j]))
//   y[i,j] = y.unlike[i,j] + y.sums[j]
//
// For u8, i8(a + 128) is a - 128, and the sums are of 128 * b. Exact: everything is modulo 2^32. A zero that
// pads a becomes 128, as every other element that is 0.
//
// FailedPrecondition, with the reason, unless the stage is such a sum, of two tensors of one type.
absl::StatusOr<std::vector<Stage>> FlippedSignStages(const Stage& stage, const Buffer& changed);

}  // namespace mycc
