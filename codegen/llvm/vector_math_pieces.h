// tanh and erf under AVX-512: odd functions as polynomials over 16 pieces of |x|, whose coefficients a
// permutation brings from a register to each lane. Half of the instructions of one formula for all x, and no
// division.
#pragma once

#include "codegen/llvm/numbers.h"

namespace mycc {

bool HasPieces(const CpuFeatures& features, Op op, llvm::Type* type);

// REQUIRES: HasPieces.
llvm::Value* EmitByPieces(Builder& builder, Op op, llvm::Value* x);

}  // namespace mycc
