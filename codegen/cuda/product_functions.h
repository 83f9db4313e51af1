// The device functions that execute instructions of tensor cores, made from their rows
// (target/instructions.h): CUDA C++ source around PTX [PTX ISA, "mma", "ldmatrix", "wgmma.mma_async"]. Pure
// functions.
#pragma once

#include <string>
#include <vector>

#include "codegen/passes/fragments.h"
#include "codegen/target/instructions.h"

namespace mycc {

struct ProductFunction {
  std::string name, text;
};

// ldmatrix of two or four matrices, and the transposing ones; and the products of all rows of warps.
const std::vector<ProductFunction>& LoadFunctions();
const std::vector<ProductFunction>& WarpProductFunctions();
// "ldmatrix_x4", "ldmatrix_x4_trans".
std::string LoadFunctionName(int64_t matrices, bool transposed);

// wgmma for tile `kTile` of the accumulator's rows. Only elements of 16 bits may be transposed. Where
// `is_first`, of a product that does not add to what the accumulator held, where sums are partial, and where
// a is in registers, a parameter says whether the instruction adds.
ProductFunction WarpgroupProduct(const Instruction& row, const FragmentLayout& layout, bool is_first,
                                 bool of_registers);

}  // namespace mycc
