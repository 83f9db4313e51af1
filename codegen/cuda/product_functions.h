// The device functions that execute instructions of tensor cores, made from their rows
// (target/instructions.h): CUDA C++ source around PTX [PTX ISA, "mma", "ldmatrix", "wgmma.mma_async"]; and
// the lists of registers and parameters that device functions around PTX have. Pure functions.
#pragma once

#include <string>

#include "codegen/cuda/prelude.h"
#include "codegen/passes/fragments.h"
#include "codegen/target/instructions.h"

namespace mycc {

// "{%4, %5}" for 2 operands from number 4 on.
std::string Registers(int64_t first, int64_t count);
// prefix0suffix, prefix1suffix, ... or from another number on.
std::string Numbered(int64_t count, const std::string& prefix, const std::string& suffix, int64_t first = 0);

// One statement of PTX that accesses memory.
DeviceFunction MemoryFunction(const std::string& name, const std::string& parameters, const std::string& ptx,
                              const std::string& operands);

// ldmatrix of two or four matrices.
DeviceFunction LoadMatrices(int64_t matrices, bool transposed);
// mma.sync. REQUIRES: a row of warps.
DeviceFunction WarpProduct(const Instruction& row);

// wgmma for `steps` steps of the depth, on `tiles` row tiles of the accumulator, as one statement: the
// compiler's time grows with the sums that statements name. Template parameters: the first row tile, whether
// the first step adds to the sums, what is transposed (a unless in registers, and b; elements of 16 bits
// alone), and how far in shared memory, in units of 16 bytes, the parts of each step lie from the
// descriptors: a of the first row tile (unless in registers), b, and a of the other row tiles.
DeviceFunction WarpgroupProduct(const Instruction& row, const FragmentLayout& layout, int64_t tiles,
                                int64_t steps, bool of_registers);
// Stands after a wait for products, and keeps all reads of their sums behind it: the compiler may move
// arithmetic on registers across a wait that does not name them.
DeviceFunction CompleteSums(DType accumulator, int64_t registers);

}  // namespace mycc
