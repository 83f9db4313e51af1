// Bounds of a launch from one walk over its blocks; the largest bound, with a share of the others, is its
// time.
#include "tuner/cost/gpu_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "codegen/target/instructions.h"

namespace mycc {
namespace {

constexpr double kGpuCallSeconds = 2e-6;
constexpr double kBaseRegisters = 26, kMostRegisters = 255;
// A thread that stores its sums through shared memory needs this many registers for each sum: it holds the
// sum and its 16-bit form. ptxas spills most kernels with 160 sums in a thread, and few with 128.
constexpr double kRegistersOfStoredSum = 1.5;
constexpr double kMostBlocksOfSm = 32, kMostThreads = 1024;
constexpr double kGpuIssuePerCycle = 4, kSharedWavefrontsPerCycle = 1;
constexpr double kL1Bytes = 64 << 10;                        // that one block finds again
constexpr double kSmallBytes = 32 << 10, kMissesOfL1 = 0.2;  // of small tensors that every block reads
constexpr double kL2Share = 0.5;                             // of L2, before other data push lines out
constexpr double kGpuOverlap = 0.15;                         // the share of other resources' time that shows
constexpr double kMostInstructions = 40000;                  // of one thread, unrolled
constexpr double kSharedSeconds = 3e-8, kBarrierSeconds = 2e-8, kShuffleSeconds = 1.5e-8;
// The time until all blocks of a cluster have begun, and until what they send each other has come.
constexpr double kJoinSeconds = 5e-7, kSendSeconds = 5e-7;

// One IR block of a launch, with all that is counted of it.
struct Part {
  const NestBlock* nest;
  std::vector<WarpAccess> accesses = {};  // empty until CountWork, as is the arithmetic
  GpuArithmetic arithmetic = {};
  double registers = 0;  // that its tensor takes of each thread
};

struct LaunchCost {
  std::vector<Part> parts;
  double blocks = 1, threads = kWarpThreads, registers = kBaseRegisters, shared_bytes = 0;
  double resident = 1, waves = 1;

  double warps() const { return std::ceil(threads / kWarpThreads); }
  // The part that tensor cores execute; null for other launches.
  const Part* mma() const {
    for (const Part& part : parts) {
      if (part.nest->loops.size() > part.nest->tile_begin && IsOnTensorCores(*part.nest)) return &part;
    }
    return nullptr;
  }

  static bool IsOnTensorCores(const NestBlock& nest) {
    const Instruction* row = nest.instruction.empty() ? nullptr : InstructionNamed(nest.instruction);
    return row != nullptr && !row->is_cpu();
  }
};

// The number of thread blocks that execute each iteration together.
double ClusterReduceBlocksOf(const LaunchCost& launch) {
  return ClusterReduceBlocksOf(*launch.parts.front().nest);
}

double Loops(const NestBlock& nest, LoopKind kind) {
  double product = 1;
  for (const NestLoop& loop : nest.loops) product *= loop.loop->loop_kind == kind ? loop.extent : 1;
  return product;
}

// Stages of the ring that a pipelined loop around the block has; 1 without one.
double StagesOf(const NestBlock& nest) {
  double stages = 1;
  for (const NestLoop& loop : nest.loops)
    stages = std::max(stages, static_cast<double>(loop.loop->marks.pipeline.stages));
  return stages;
}

double SharedBytes(const BufferNode& buffer, double stages) {
  return static_cast<double>(buffer.memory_bytes()) * stages;
}

// The sums go through shared memory to the output: a part behind the product writes there.
bool StoresThroughShared(const LaunchCost& launch) {
  const Part* const product = launch.mma();
  return product != nullptr &&
         std::any_of(product + 1, launch.parts.data() + launch.parts.size(),
                     [](const Part& part) { return part.nest->block->out->scope == Scope::kShared; });
}

// Registers and shared memory that the allocations under a launch's loops take.
void AddAllocations(const FunctionNest& nest, LaunchCost* launch) {
  for (const NestAlloc& alloc : nest.allocs) {
    for (Part& part : launch->parts) {
      if (part.nest->block->out != alloc.buffer) continue;
      if (alloc.buffer->scope == Scope::kShared) {
        launch->shared_bytes += SharedBytes(*alloc.buffer, StagesOf(*part.nest));
      } else if (alloc.buffer->scope != Scope::kGlobal || alloc.depth > 0) {
        double elements = ElementsOfThread(*part.nest, alloc.depth);
        if (!part.nest->instruction.empty())
          elements = std::min(elements, static_cast<double>(alloc.buffer->num_elements()) / launch->threads);
        // Registers hold narrow types as wide ones.
        part.registers = elements * std::max(1.0, DTypeBytes(alloc.buffer->dtype) / 4.0);
        launch->registers += part.registers;
      }
      break;
    }
  }
}

// The launches, with what limits them. Their work is not counted yet.
std::vector<LaunchCost> LaunchesOf(const FunctionNest& nest, const GpuMachine& machine) {
  std::map<int, LaunchCost> by_group;
  for (const NestBlock& block : nest.blocks) {
    if (block.ahead_of_time) continue;
    LaunchCost& launch = by_group[block.group];
    launch.parts.push_back({&block});
    launch.blocks = std::max(launch.blocks, BlocksOf(block));
    launch.threads = std::max(launch.threads, ThreadsOf(block));
  }
  std::vector<LaunchCost> launches;
  for (auto& [group, launch] : by_group) {
    AddAllocations(nest, &launch);
    if (const Part* mma = launch.mma()) {
      launch.threads = MmaThreads(*mma->nest);
      launch.registers = kBaseRegisters + MmaRegisters(*mma->nest);
    }
    const double registers = std::ceil(std::min(launch.registers, kMostRegisters) / 8) * 8;
    launch.resident = std::floor(
        std::min({kMostBlocksOfSm, machine.row.threads_per_sm / (launch.warps() * kWarpThreads),
                  kRegisterFile / (registers * launch.warps() * kWarpThreads),
                  launch.shared_bytes > 0 ? machine.shared_bytes_of_sm / (launch.shared_bytes + 1024)
                                          : kMostBlocksOfSm}));
    launch.resident = std::max(1.0, launch.resident);
    launch.waves = launch.blocks / (machine.sms * launch.resident);
    launches.push_back(std::move(launch));
  }
  return launches;
}

// Counts what only the estimate needs; CheckGpuLimits does without.
void CountWork(const GpuMachine& machine, LaunchCost* launch) {
  for (Part& part : launch->parts) {
    part.accesses = WarpAccessesOf(*part.nest);
    part.arithmetic = GpuArithmeticOf(*part.nest, machine);
  }
}

// The first loop inside the block loops.
size_t InsideBlocks(const NestBlock& nest) {
  size_t inside = 0;
  while (inside < nest.loops.size() && nest.loops[inside].loop->loop_kind == LoopKind::kGrid) ++inside;
  return inside;
}

double BytesWithin(const NestAccess& access, size_t level) {
  return std::min(access.line_bytes[level], static_cast<double>(access.buffer->bytes()));
}

struct DramTraffic {
  double read = 0, written = 0;
};

// The bytes that DRAM moves for a part: buffers that an earlier launch left in L2, or an earlier part of this
// one, come from there.
DramTraffic DramBytes(const NestBlock& nest, const LaunchCost& launch, const GpuMachine& machine,
                      std::map<const BufferNode*, int>* in_l2) {
  DramTraffic traffic;
  for (const NestAccess& access : nest.accesses) {
    const Scope scope = access.buffer->scope;
    if (scope != Scope::kGlobal && scope != Scope::kPacked) continue;
    const double all = BytesWithin(access, 0);
    const double together = BytesWithin(access, InsideBlocks(nest)) / ClusterReduceBlocksOf(launch) *
                            std::min(launch.blocks, machine.sms * launch.resident);
    const bool stays = std::min(all, together) < kL2Share * machine.l2_bytes;
    const bool known = in_l2->count(access.buffer.get()) > 0;
    if (!(known && stays)) (access.write ? traffic.written : traffic.read) += all;
    if (all < kL2Share * machine.l2_bytes || stays) ++(*in_l2)[access.buffer.get()];
  }
  return traffic;
}

// Bytes that come from L2 at most, if a thread block reads nothing twice: L1 keeps what it has read.
double BytesOfBlocks(const NestBlock& nest, const BufferNode* buffer, double blocks) {
  double bytes = 0;
  for (const NestAccess& access : nest.accesses) {
    if (access.buffer.get() != buffer || access.write) continue;
    const double of_block = BytesWithin(access, InsideBlocks(nest)) / ClusterReduceBlocksOf(nest);
    if (of_block > kL1Bytes) return std::numeric_limits<double>::infinity();
    bytes += of_block * blocks;
  }
  return bytes;
}

// The seconds that one thread block takes when it is alone: what waits for what.
double BlockSeconds(const LaunchCost& launch, const GpuMachine& machine) {
  const double joined = ClusterReduceBlocksOf(launch);
  double seconds = joined > 1 ? kJoinSeconds : 0;
  for (const Part& part : launch.parts) {
    const NestBlock& nest = *part.nest;
    const double serial = Loops(nest, LoopKind::kSerial), stages = StagesOf(nest);
    const auto reads = [&](bool shared) {
      return std::ranges::any_of(part.accesses, [&](const WarpAccess& access) {
        return !access.write && (access.buffer->scope == Scope::kShared) == shared;
      });
    };
    if (reads(false)) seconds += serial / stages * machine.row.dram_seconds;
    if (reads(true)) seconds += serial * kSharedSeconds / stages;
    seconds += kBarrierSeconds;
    for (const NestLoop& loop : nest.loops) {
      if (loop.loop->loop_kind != LoopKind::kThread || !loop.reduces || loop.extent <= 1) continue;
      seconds +=
          kShuffleSeconds * std::log2(loop.extent) + (loop.extent > kWarpThreads ? 2 * kBarrierSeconds : 0);
      if (joined > 1) seconds += kSendSeconds;
    }
    seconds += part.arithmetic.cycles / launch.blocks / (machine.row.ghz * 1e9);
  }
  return seconds;
}

struct Totals {
  double arithmetic = 0, issue = 0, shared = 0;  // cycles, of one SM with an even share
  double l2 = 0, dram = 0;                       // seconds
};

// Bytes that a thread asks for before it waits.
double InFlightOfThread(const Part& part) {
  constexpr double kMost = 256;
  double bytes = 0;
  for (const WarpAccess& access : part.accesses) {
    if (!access.write && access.buffer->scope != Scope::kShared) bytes += access.bytes * access.unrolled;
  }
  return std::min(bytes * StagesOf(*part.nest), kMost);
}

double CoalescedShare(const Part& part) {
  double useful = 0, moved = 0;
  for (const WarpAccess& access : part.accesses) {
    if (access.buffer->scope == Scope::kShared) continue;
    useful += access.executions * access.bytes * kWarpThreads;
    moved += access.executions * access.sectors * kSectorBytes;
  }
  return moved > 0 ? useful / moved : 1;
}

Totals TotalsOf(const Part& part, const LaunchCost& launch, const GpuMachine& machine,
                const DramTraffic& dram, BlockCost* cost) {
  Totals totals;
  const double warps = std::ceil(ThreadsOf(*part.nest) / kWarpThreads) * launch.blocks;
  double wavefronts = 0, conflicting = 0, ideal = 0, instructions = part.arithmetic.instructions;
  for (const WarpAccess& access : part.accesses) {
    const double runs = access.executions * warps * UsefulShare(*part.nest);
    instructions += runs * access.instructions;
    wavefronts += runs * access.wavefronts;
    if (access.buffer->scope == Scope::kShared) {
      conflicting += runs * access.wavefronts;
      ideal += runs * std::max(1.0, access.bytes / 4);
    } else {
      double bytes = runs * access.sectors * kSectorBytes;
      if (!access.write) {
        bytes = std::min(bytes, BytesOfBlocks(*part.nest, access.buffer.get(), launch.blocks));
        if (static_cast<double>(access.buffer->bytes()) <= kSmallBytes) bytes *= kMissesOfL1;
      }
      cost->l2_bytes += bytes;
    }
  }
  const double busy = std::min(machine.sms, launch.blocks);
  const double of_thread = InFlightOfThread(part);
  const double in_flight = busy * launch.resident * launch.threads * of_thread;
  // Nothing waits for stores.
  const double reach =
      std::min(machine.row.dram_bytes_per_second, std::max(in_flight, 1.0) / machine.row.dram_seconds);
  totals.dram = dram.read / reach + dram.written / machine.row.dram_bytes_per_second;
  totals.l2 = cost->l2_bytes / machine.row.l2_bytes_per_second * (machine.sms / busy);
  totals.arithmetic = part.arithmetic.cycles / busy;
  totals.issue = instructions / kGpuIssuePerCycle / busy;
  totals.shared = wavefronts / kSharedWavefrontsPerCycle / busy;

  const double cycles = machine.row.ghz * 1e9;
  cost->arithmetic = totals.arithmetic;
  cost->issue = totals.issue;
  cost->loads = totals.shared;
  cost->l2 = totals.l2 * cycles;
  cost->dram = totals.dram * cycles;
  cost->dram_bytes = dram.read + dram.written;
  cost->instructions = instructions / std::max(1.0, warps);
  cost->gpu.coalescing = CoalescedShare(part);
  cost->gpu.conflicts = ideal > 0 ? conflicting / ideal : 1;
  cost->gpu.in_flight_bytes = in_flight / busy;
  return totals;
}

void DescribeLaunch(const LaunchCost& launch, const Part& part, const GpuMachine& machine, BlockCost* cost) {
  cost->accumulators = part.registers;
  cost->registers = launch.registers;
  cost->threads = launch.threads * std::min(launch.blocks, machine.sms * launch.resident);
  cost->gpu.waves = launch.waves;
  cost->gpu.blocks = launch.blocks;
  cost->gpu.threads = launch.threads;
  cost->gpu.shared_bytes = launch.shared_bytes;
  cost->gpu.occupancy = launch.resident * launch.warps() * kWarpThreads / machine.row.threads_per_sm;
}

// Seconds of a launch; the parts' costs are filled in, with shares of the time as their cycles.
double LaunchSeconds(const LaunchCost& launch, const GpuMachine& machine,
                     std::map<const BufferNode*, int>* in_l2, const std::vector<BlockCost*>& costs) {
  Totals sum;
  const double cycles = machine.row.ghz * 1e9;
  for (size_t p = 0; p < launch.parts.size(); ++p) {
    const Part& part = launch.parts[p];
    DescribeLaunch(launch, part, machine, costs[p]);
    const Totals totals =
        TotalsOf(part, launch, machine, DramBytes(*part.nest, launch, machine, in_l2), costs[p]);
    sum.arithmetic += totals.arithmetic;
    sum.issue += totals.issue;
    sum.shared += totals.shared;
    sum.l2 += totals.l2;
    sum.dram += totals.dram;
  }
  if (const Part* mma = launch.mma()) {
    double dram = 0, stored = 0;
    for (size_t p = 0; p < launch.parts.size(); ++p) dram += costs[p]->dram_bytes;
    for (const Part& part : launch.parts) {
      for (const NestAccess& access : part.nest->accesses) {
        if (access.write && access.buffer->scope == Scope::kGlobal)
          stored += static_cast<double>(access.buffer->bytes());
      }
    }
    const MmaSeconds time =
        MmaLaunchSeconds(*mma->nest, machine, launch.blocks, launch.shared_bytes, stored, dram);
    for (BlockCost* cost : costs) {
      cost->cycles = time.seconds * cycles / static_cast<double>(costs.size());
      cost->gpu.mma = time;
    }
    return time.seconds;
  }
  // Blocks come in turns of all SMs; the last turn is seldom full.
  const double turns = std::ceil(launch.blocks / machine.sms) / (launch.blocks / machine.sms);
  const double uneven = launch.blocks > machine.sms ? turns : 1;
  const double parts[] = {sum.dram, sum.l2, uneven * std::max(sum.arithmetic, sum.issue) / cycles,
                          uneven * sum.shared / cycles};
  double largest = 0, all = 0;
  for (const double seconds : parts) {
    largest = std::max(largest, seconds);
    all += seconds;
  }
  const double block = BlockSeconds(launch, machine);
  // The first blocks begin, and the last ones end, with nothing beside them.
  constexpr double kMostRamp = 1e-6;
  const double throughput = largest + kGpuOverlap * (all - largest) + std::min(0.5 * block, kMostRamp);
  const double seconds = std::max(throughput, std::ceil(launch.waves) * block);
  double weight = 0;
  for (const BlockCost* cost : costs) weight += cost->dram + cost->l2 + cost->arithmetic + cost->loads + 1;
  for (BlockCost* cost : costs) {
    cost->latency = block * cycles;
    cost->imbalance = uneven;
    cost->cycles = seconds * cycles * (cost->dram + cost->l2 + cost->arithmetic + cost->loads + 1) / weight;
  }
  return seconds;
}

absl::Status Exhausted(const std::string& what) { return absl::ResourceExhaustedError(what); }

}  // namespace

Cost EstimateGpuCost(const FunctionNest& nest, const GpuMachine& machine) {
  Cost total;
  total.blocks.resize(nest.blocks.size());
  total.seconds = kGpuCallSeconds;
  std::map<const BufferNode*, int> in_l2;
  std::vector<LaunchCost> launches = LaunchesOf(nest, machine);
  for (LaunchCost& launch : launches) {
    CountWork(machine, &launch);
    std::vector<BlockCost*> costs;
    for (const Part& part : launch.parts) costs.push_back(&total.blocks[part.nest - nest.blocks.data()]);
    total.seconds += LaunchSeconds(launch, machine, &in_l2, costs);
  }
  total.seconds += machine.launch_seconds * std::max(0.0, static_cast<double>(launches.size()) - 1);
  return total;
}

absl::Status CheckGpuLimits(const FunctionNest& nest, const GpuMachine& machine) {
  for (const LaunchCost& launch : LaunchesOf(nest, machine)) {
    const std::string where = absl::StrCat("the launch of ", launch.parts.back().nest->block->name, ": ");
    if (launch.threads > kMostThreads)
      return Exhausted(absl::StrCat(where, launch.threads, " threads; a block has at most ", kMostThreads));
    if (launch.shared_bytes > machine.shared_bytes)
      return Exhausted(absl::StrCat(where, static_cast<int64_t>(launch.shared_bytes),
                                    " bytes of shared memory; a block has at most ", machine.shared_bytes));
    const Part* mma = launch.mma();
    const double most = mma != nullptr
                            ? MmaMostRegisters(*mma->nest)
                            : std::min(kMostRegisters, kRegisterFile / (launch.warps() * kWarpThreads));
    // Either products are being summed, or the sums are being stored.
    const double registers =
        StoresThroughShared(launch)
            ? std::max(launch.registers, kBaseRegisters + kRegistersOfStoredSum * MmaSums(*mma->nest))
            : launch.registers;
    if (registers > most)
      return Exhausted(absl::StrCat(where, "about ", std::ceil(registers), " registers a thread; at most ",
                                    std::floor(most), " are there"));
    for (const Part& part : launch.parts) {
      const double unrolled = Loops(*part.nest, LoopKind::kUnroll) * Loops(*part.nest, LoopKind::kVector) *
                              std::max(1.0, part.nest->ops.arithmetic());
      if (part.nest->instruction.empty() && unrolled > kMostInstructions)
        return Exhausted(absl::StrCat("block ", part.nest->block->name, ": about ", std::floor(unrolled),
                                      " unrolled instructions; expected at most ", kMostInstructions));
    }
  }
  return absl::OkStatus();
}

}  // namespace mycc
