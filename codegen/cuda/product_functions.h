// The device functions that execute instructions of tensor cores, made from their rows
// (target/instructions.h): CUDA C++ source around PTX [PTX ISA, "mma", "ldmatrix", "wgmma.mma_async"]. Pure
// functions.
#pragma once

#include <string>

#include "codegen/passes/fragments.h"
#include "codegen/target/instructions.h"

namespace mycc {

struct ProductFunction {
  std::string name, text;
};

// ldmatrix of two or four matrices.
ProductFunction LoadMatrices(int64_t matrices, bool transposed);
// mma.sync. REQUIRES: a row of warps.
ProductFunction WarpProduct(const Instruction& row);

// wgmma for `steps` steps of the depth, on `tiles` row tiles of the accumulator, as one statement: the
// compiler's time grows with the sums that statements name. Template parameters: the first row tile, whether
// the first step adds to the sums, what is transposed (a unless in registers, and b; elements of 16 bits
// alone), and how far in shared memory, in units of 16 bytes, the parts of each step lie from the
// descriptors: a of the first row tile (unless in registers), b, and a of the other row tiles.
ProductFunction WarpgroupProduct(const Instruction& row, const FragmentLayout& layout, int64_t tiles,
                                 int64_t steps, bool of_registers);
// Stands after a wait for products, and keeps all reads of their sums behind it: the compiler may move
// arithmetic on registers across a wait that does not name them.
ProductFunction CompleteSums(DType accumulator, int64_t registers);

}  // namespace mycc
