// The analytic time of scheduled IR on a GPU, behind analytic.h. Each statement at the root is a launch. Its
// bound is the largest of DRAM, L2, shared memory, arithmetic, instruction issue, and the latencies that one
// thread block meets in sequence, times the waves of blocks. Pure functions.
#pragma once

#include "tuner/cost/analytic.h"
#include "tuner/cost/gpu_access.h"
#include "tuner/space/gpu_machine.h"

namespace mycc {

Cost EstimateGpuCost(const FunctionNest& nest, const GpuMachine& machine);
absl::Status CheckGpuLimits(const FunctionNest& nest, const GpuMachine& machine);

// Cycles of all of a block's arithmetic on one SM, if a single SM did it; and the number of warp instructions
// that it issues.
struct GpuArithmetic {
  double cycles = 0, instructions = 0;
};
GpuArithmetic GpuArithmeticOf(const NestBlock& nest, const GpuMachine& machine);

// The same for a block that a tensor-core instruction executes (gpu_mma_cost.cc).
GpuArithmetic MmaArithmeticOf(const NestBlock& nest, const GpuMachine& machine);
// Threads of its thread block; accumulators in each computing thread, and these with the partial sums beside.
double MmaThreads(const NestBlock& nest);
double MmaSums(const NestBlock& nest);
double MmaRegisters(const NestBlock& nest);
// Registers that such a thread may use.
double MmaMostRegisters(const NestBlock& nest);
// The launch around the block: `blocks` tiles with `shared_bytes` each, the bytes that it stores in all, and
// the bytes that DRAM moves.
MmaSeconds MmaLaunchSeconds(const NestBlock& nest, const GpuMachine& machine, double blocks,
                            double shared_bytes, double output_bytes, double dram_bytes);

}  // namespace mycc
