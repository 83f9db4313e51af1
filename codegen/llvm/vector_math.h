// Emits elementary functions on floats and vectors of floats as straight-line code without calls (f64: libm,
// lane by lane).
//
// The errors are those of expr/accuracy.h; infinities, NaN, zeros and subnormals give what C's functions
// return. tests/llvm/functions_test.cc checks both. sin and cos of more than 1e6 call libm.
#pragma once

#include "codegen/llvm/numbers.h"

namespace mycc {

// `op` is kExp, kExp2, kLog, kTanh, kErf, kSin, kCos or, with y, kPow.
llvm::Value* EmitMath(Builder& builder, const CpuFeatures& features, Op op, llvm::Value* x, llvm::Value* y);

// For EmitMath: tanh and erf under AVX-512 (vector_math_pieces.cc); null for others.
llvm::Value* EmitByPieces(Builder& builder, const CpuFeatures& features, Op op, llvm::Value* x);

}  // namespace mycc
