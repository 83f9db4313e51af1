// Estimates the time of scheduled IR without measuring: on a CPU from arithmetic, loads and stores, latency
// of reductions, register pressure, cache traffic, page misses and threads; gpu_cost.h has the GPU's. The
// estimates need only be in the right order. They choose the default schedule, rank candidates before any
// measurement, and are what the learned model corrects. Pure functions.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/ir/function.h"
#include "codegen/target/target.h"
#include "tuner/cost/nest.h"

namespace mycc {

// A launch on tensor cores, in seconds: all of it; products, and their operands' way from L2 to shared
// memory, in the turns of the SM that has most; waiting for copies; DRAM; and what stands before and behind
// the tiles' steps.
struct MmaSeconds {
  double seconds = 0, multiply = 0, feed = 0, wait = 0, memory = 0, ends = 0;
};

// The part of a block's cost that only GPUs have.
struct GpuBlockCost {
  double blocks = 0, threads = 0;  // of its launch: thread blocks, threads of each
  double waves = 0;                // turns of blocks on all SMs
  double occupancy = 0;            // share of an SM's threads
  double shared_bytes = 0;         // of a thread block
  double coalescing = 1;       // bytes asked for / bytes that the sectors have; above 1 where threads share
  double conflicts = 1;        // turns in shared memory / turns without conflicts
  double in_flight_bytes = 0;  // that an SM waits for at a time
  MmaSeconds mma;              // of its launch, where that is on tensor cores
};

// Cycles of one block over the whole run, on one thread, each resource for itself. They overlap: `cycles` is
// less than the sum.
struct BlockCost {
  // In the core.
  double arithmetic = 0, loads = 0, stores = 0, issue = 0, latency = 0, spills = 0, overhead = 0;
  double l2 = 0, l3 = 0, dram = 0, pages = 0;  // of what comes from there, and page walks
  double l2_bytes = 0, l3_bytes = 0, dram_bytes = 0;
  double accumulators = 0;  // vector registers that carry the output through a reduction
  double registers = 0;     // vector registers in all
  double instructions = 0;  // of the tile, unrolled
  double threads = 1;       // that share the work evenly enough to count
  double imbalance = 1;     // work of the busiest thread / even share
  double cycles = 0;        // of the busiest thread
  GpuBlockCost gpu;
};

struct Cost {
  double seconds = 0;
  std::vector<BlockCost> blocks;  // as in FunctionNest
};
Cost EstimateCost(const FunctionNest& nest, const Machine& machine);

// Limits that no compiled code can keep or make good: ResourceExhausted, naming the block, what it needs and
// what there is.
absl::Status CheckLimits(const FunctionNest& nest, const Machine& machine);

// Seconds of a schedule: CheckLimits, then EstimateCost.
absl::StatusOr<double> EstimateSeconds(const Function& scheduled, const Target& target);

}  // namespace mycc
