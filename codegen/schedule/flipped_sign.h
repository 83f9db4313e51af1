// Rewrites sums of products of two i8, or of two u8, as sums of u8 times i8, the only pairing that some
// processors multiply (vpdpbusd). Pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "codegen/workload/workload.h"

namespace mycc {

// Suffixes of the stages' names, after the sum's own name.
inline constexpr char kChangedSign[] = ".sign";       // the operand with its sign flipped
inline constexpr char kSignSums[] = ".sums";          // the correction of each sum
inline constexpr char kFlippedProduct[] = ".unlike";  // sums of products

// For y[i,j] = sum[k](i32(a[i,k]) * i32(b[k,j])) of i8, when the sign of a is changed:
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
