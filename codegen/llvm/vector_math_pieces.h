// Emits tanh and erf under AVX-512: odd functions, each a polynomial for each of 16 ranges of |x|; a
// permutation selects every lane's coefficients. It needs half of the instructions of one formula for all x,
// and no division.
#pragma once

#include "codegen/llvm/numbers.h"

namespace mycc {

bool HasPieces(const CpuFeatures& features, Op op, llvm::Type* type);

// REQUIRES: HasPieces.
llvm::Value* EmitByPieces(Builder& builder, Op op, llvm::Value* x);

}  // namespace mycc
