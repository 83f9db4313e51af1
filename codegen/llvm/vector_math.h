// Elementary functions on floats and vectors of floats, as straight-line code without calls (f64: libm, lane
// by lane).
//
// Largest errors in units in the last place, checked against libm by tests/llvm/vector_math_test.cc: exp 1
// (1.2 where the target has no FMA), log 1, tanh 3 (1.5 under AVX-512, by vector_math_pieces.h), erf 3 (2.5),
// sin and cos 2 (libm beyond 1e6), pow 2.
// Infinities, NaN, zeros and subnormals come out as C's functions return them.
#pragma once

#include "codegen/llvm/numbers.h"

namespace mycc {

// `op` is kExp, kLog, kTanh, kErf, kSin, kCos or, with y, kPow.
llvm::Value* EmitMath(Builder& builder, const CpuFeatures& features, Op op, llvm::Value* x, llvm::Value* y);

}  // namespace mycc
