#include "tuner/cost/analytic.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tuner/cost/block_cost.h"
#include "tuner/cost/gpu_cost.h"

namespace mycc {
namespace {

constexpr double kCallSeconds = 2e-7;
constexpr double kOverlap = 0.3;                // the share of other resources' time that shows
constexpr double kMaxTileInstructions = 20000;  // of one block, unrolled
constexpr double kMaxStackBytes = 256 * 1024;   // of one thread
constexpr double kStackAllocBytes = 16 * 1024;  // larger buffers live in the workspace

void SetThreads(const NestBlock& nest, const Machine& machine, BlockCost* cost) {
  const double iterations = nest.parallel_iterations();
  if (iterations <= 1 || machine.threads <= 1) return;
  cost->threads = std::min(machine.threads, iterations);
  cost->imbalance = std::ceil(iterations / cost->threads) * cost->threads / iterations;
}

double CyclesOf(const BlockCost& cost, const Machine& machine) {
  // Threads that share cores wait for each other.
  const double crowd = std::max(1.0, cost.threads / machine.core_threads);
  const double core = crowd * std::max({cost.arithmetic, cost.loads, cost.stores, cost.issue, cost.latency});
  const double parts[] = {core, cost.l2, cost.l3, cost.dram};
  double largest = 0, sum = 0;
  for (const double part : parts) {
    largest = std::max(largest, part);
    sum += part;
  }
  const double beside = crowd * (cost.arithmetic + cost.loads + cost.stores) - core;
  const double exposed = crowd * (cost.spills + cost.overhead) + cost.pages;
  return largest + kOverlap * (sum - largest) + 0.1 * beside + exposed;
}

absl::Status CheckBlock(const NestBlock& nest, const BlockCost& cost, const Machine& machine) {
  const std::string where = absl::StrCat("block ", nest.block->name, ": ");
  if (!nest.instruction.empty() && cost.accumulators > machine.registers) {
    return absl::ResourceExhaustedError(absl::StrCat(
        where, cost.accumulators, " accumulators; the target has ", machine.registers, " vector registers"));
  }
  if (cost.instructions > kMaxTileInstructions) {
    return absl::ResourceExhaustedError(absl::StrCat(where, "about ", std::floor(cost.instructions),
                                                     " unrolled instructions; expected at most ",
                                                     kMaxTileInstructions));
  }
  return absl::OkStatus();
}

// The tiles and small buffers that stand on one thread's stack at the same time must fit into it.
absl::Status CheckStack(const FunctionNest& nest, const Machine& machine) {
  double bytes = 0;
  for (const NestAlloc& alloc : nest.allocs) {
    const double size = static_cast<double>(alloc.buffer->bytes());
    const bool tile = alloc.buffer->scope == Scope::kAccumulator;
    if (tile && size > 4 * machine.registers * machine.vector_bytes && size > kStackAllocBytes) {
      return absl::ResourceExhaustedError(absl::StrCat("accumulator ", alloc.buffer->name, ": ", size,
                                                       " bytes; the target's registers hold ",
                                                       machine.registers * machine.vector_bytes));
    }
    if (tile || size <= kStackAllocBytes) bytes += size;
  }
  if (bytes <= kMaxStackBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("buffers on the stack take ", bytes, " bytes; expected at most ", kMaxStackBytes));
}

}  // namespace

Cost EstimateCost(const FunctionNest& nest, const Machine& machine) {
  if (machine.gpu) return EstimateGpuCost(nest, *machine.gpu);
  Cost total;
  const double resident = nest.param_bytes + nest.workspace_bytes;
  double cycles = 0;
  for (const NestBlock& block : nest.blocks) {
    BlockCost cost;
    SetThreads(block, machine, &cost);
    AddCoreCost(block, machine, &cost);
    AddMemoryCost(block, machine, resident, &cost);
    cost.cycles = CyclesOf(cost, machine) * cost.imbalance / cost.threads;
    if (!block.ahead_of_time) cycles += cost.cycles;
    total.blocks.push_back(cost);
  }
  const double regions = machine.threads > 1 ? nest.parallel_regions : 0;
  total.seconds = kCallSeconds + cycles / (machine.row.ghz * 1e9) + regions * machine.region_seconds;
  return total;
}

absl::Status CheckLimits(const FunctionNest& nest, const Machine& machine) {
  if (machine.gpu) return CheckGpuLimits(nest, *machine.gpu);
  for (const NestBlock& block : nest.blocks) {
    BlockCost cost;
    AddCoreCost(block, machine, &cost);
    MYCC_RETURN_IF_ERROR(CheckBlock(block, cost, machine));
  }
  return CheckStack(nest, machine);
}

absl::StatusOr<double> EstimateSeconds(const Function& scheduled, const Target& target) {
  const Machine machine(target);
  const FunctionNest nest = AnalyzeNest(scheduled);
  MYCC_RETURN_IF_ERROR(CheckLimits(nest, machine));
  return EstimateCost(nest, machine).seconds;
}

}  // namespace mycc
