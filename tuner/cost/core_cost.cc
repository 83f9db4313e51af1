// The cost of a block inside a CPU core: the throughput of arithmetic, loads, stores and issue, the latency
// of reductions, and register spills.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "codegen/target/instructions.h"
#include "tuner/cost/block_cost.h"

namespace mycc {
namespace {

// Cycles of one vector of results where it is not simply 1 / fma_per_cycle.
constexpr double kDivideCycles = 5, kRootCycles = 6, kTranscendentalCycles = 10;
constexpr double kLoopInstructions = 2;  // to count and to branch
constexpr double kLoopCycles = 2;        // of one iteration of a loop that has loops inside
constexpr double kTileCycles = 1;        // of each run of the tile: a branch, and new addresses
constexpr double kCombineCycles = 12;    // to add up the lanes of one vector
constexpr double kUopCacheInstructions = 3500;
constexpr double kIssuePerCycle = 4.5;

constexpr double kTileLatency = 52;  // of one product of tile registers

// The hardware instruction that the nest is part of; one of single elements where it is part of none.
const Instruction& InstructionOf(const NestBlock& nest) {
  static const Instruction kNone{"", DType::kF32, DType::kF32, 1, 1, 1, 0.5};
  const Instruction* row = nest.instruction.empty() ? nullptr : InstructionNamed(nest.instruction);
  return row ? *row : kNone;
}

// Iterations of the loops inside that one load of an operand serves: the elements of a group lie together,
// and a row of a tile register holds all of its depth.
double ElementsPerLoad(const Instruction& instruction, bool broadcast) {
  return instruction.kind == InstructionClass::kTile && broadcast ? instruction.k : instruction.group;
}

// Whether the lanes lie apart in memory.
bool IsApart(const NestBlock& nest, const NestAccess& access) {
  if (nest.lane < 0) return false;
  const double stride = std::abs(access.stride[nest.lane]);
  return access.gather || (stride > 1 && stride != InstructionOf(nest).group);
}

double LaneFactor(const NestBlock& nest, const NestAccess& access, const Machine& machine) {
  if (nest.lane < 0) return 1;
  const double stride = access.stride[nest.lane];
  if (IsApart(nest, access)) return nest.loops[nest.lane].extent * machine.row.gather_cycles;
  if (stride == 0) return 1;
  return std::ceil(std::abs(stride) * nest.loops[nest.lane].extent * DTypeBytes(access.buffer->dtype) /
                   machine.vector_bytes);
}

// Machine accesses for one run of the tile: points that the tile's loops do not move are loaded once.
double AccessesPerTile(const NestBlock& nest, const NestAccess& access, const Machine& machine) {
  double count = LaneFactor(nest, access, machine) * access.count;
  for (size_t l = nest.tile_begin; l < nest.loops.size(); ++l) {
    if (static_cast<int>(l) != nest.lane && access.stride[l] != 0) count *= nest.loops[l].extent;
  }
  if (access.write) return count;
  const bool broadcast = nest.lane >= 0 && access.stride[nest.lane] == 0;
  return std::max(count / ElementsPerLoad(InstructionOf(nest), broadcast), 1.0);
}

double LoadsPerCycle(const NestBlock& nest, const NestAccess& access, const Machine& machine) {
  const bool broadcast = nest.lane >= 0 && access.stride[nest.lane] == 0 && !access.gather;
  return broadcast ? machine.row.broadcasts_per_cycle : machine.row.loads_per_cycle;
}

// Runs of the tile in which the access is made: the loops next to the tile that do not move it leave it in a
// register.
double TileRuns(const NestBlock& nest, const NestAccess& access) {
  size_t end = nest.tile_begin;
  while (end > 0 && access.stride[end - 1] == 0 && !access.gather) --end;
  return nest.Product(0, end);
}

double ArithmeticPerVector(const OpCounts& ops) {
  // Conversions, integer and mask operations run beside the float ones; they count half.
  return ops.add + ops.mul - ops.fused + ops.minmax + ops.other +
         0.5 * (ops.compare_select + ops.convert + ops.integer);
}

double SlowCyclesPerVector(const OpCounts& ops) {
  return kDivideCycles * ops.divide + kRootCycles * ops.root + kTranscendentalCycles * ops.transcendental;
}

// Instructions that multiply and add, in one run of the tile.
double ProductsPerTile(const NestBlock& nest, const Instruction& instruction, const Machine& machine) {
  double iterations = 1;
  for (size_t l = nest.tile_begin; l < nest.loops.size(); ++l) iterations *= nest.loops[l].extent;
  return iterations /
         (machine.vector_bytes / DTypeBytes(instruction.accumulator) * instruction.m * instruction.k);
}

// Vectors of results in one run of the tile.
double VectorsPerTile(const NestBlock& nest, const Machine& machine) {
  double vectors = nest.vectors(machine);
  for (size_t l = nest.tile_begin; l < nest.loops.size(); ++l) {
    if (static_cast<int>(l) != nest.lane) vectors *= nest.loops[l].extent;
  }
  return vectors;
}

// The share of the tiles' runs that is executed: of a vector with some lanes inside the domain all of it, or,
// where there are no masks, a narrower one for each power of two.
double ExecutedShare(const NestBlock& nest, const Machine& machine) {
  if (nest.lane_useful >= 1) return nest.useful;
  const auto width = static_cast<int64_t>(machine.vector_bytes / nest.elem_bytes());
  const auto elements = static_cast<int64_t>(std::lround(nest.lane_useful * nest.lane_covered));
  const bool has_masks = machine.registers > 16;
  const int64_t whole = elements / width, rest = elements % width;
  const double partial =
      has_masks ? static_cast<double>(rest > 0) : std::popcount(static_cast<uint64_t>(rest));
  const double vectors = static_cast<double>(whole) + partial;
  return nest.useful * std::max(1.0, vectors * static_cast<double>(width) / static_cast<double>(elements));
}

// Cycles a reduction takes because every step waits for the one before: the tile's accumulators work in
// parallel, its reduction steps do not.
double LatencyCycles(const NestBlock& nest, const Machine& machine) {
  if (nest.block->reduce == ReduceOp::kNone) return 0;
  const bool chain = nest.tile_begin > 0 && !nest.loops[nest.tile_begin - 1].moves_out;
  double steps = 1;
  bool inside = false;
  for (size_t l = nest.tile_begin; l < nest.loops.size(); ++l) {
    if (nest.loops[l].moves_out) continue;
    inside = true;
    // A vector that reduces into one element has lanes of its own.
    steps *= static_cast<int>(l) == nest.lane ? 1 : nest.loops[l].extent;
  }
  if (!chain && !inside) return 0;
  const Instruction& instruction = InstructionOf(nest);
  const double latency = instruction.kind == InstructionClass::kTile ? kTileLatency : machine.row.fma_latency;
  return nest.Product(0, nest.tile_begin) * steps / instruction.k * latency;
}

// Once for every element that a vector reduces into.
double CombineCycles(const NestBlock& nest) {
  if (nest.lane < 0 || nest.loops[nest.lane].moves_out || nest.block->reduce == ReduceOp::kNone) return 0;
  double elements = 1;
  for (size_t l = 0; l < nest.loops.size(); ++l) {
    if (nest.loops[l].moves_out) elements *= nest.loops[l].extent;
  }
  return elements * kCombineCycles;
}

void CountRegisters(const NestBlock& nest, const Machine& machine, BlockCost* cost) {
  const NestAccess& out = nest.accesses[0];
  const bool carried = nest.block->reduce != ReduceOp::kNone;
  cost->accumulators = carried ? AccessesPerTile(nest, out, machine) : 0;
  if (InstructionOf(nest).kind == InstructionClass::kTile) {
    // Its sums have registers of their own; how many is the rule's business.
    cost->accumulators = cost->registers = 0;
    return;
  }
  // One operand's vectors are held while the others pass through.
  double held = 1;
  for (const NestAccess& access : nest.accesses) {
    if (access.write || nest.lane < 0 || std::abs(access.stride[nest.lane]) != 1) continue;
    held = std::max(held, std::min(LaneFactor(nest, access, machine), 4.0));
  }
  cost->registers = cost->accumulators + held + 1;
}

}  // namespace

void AddCoreCost(const NestBlock& nest, const Machine& machine, BlockCost* cost) {
  const double executed = ExecutedShare(nest, machine);
  const double runs = nest.Product(0, nest.tile_begin) * executed;
  const double vectors = VectorsPerTile(nest, machine);
  const Instruction& instruction = InstructionOf(nest);
  const bool product = !nest.instruction.empty();
  // A row of instructions.cc says what a core does that starts two vector operations in a cycle.
  const double rate = product && instruction.kind == InstructionClass::kTile
                          ? 1 / instruction.cycles
                          : machine.row.fma_per_cycle * 0.5 / instruction.cycles;
  const double arithmetic = product ? ProductsPerTile(nest, instruction, machine)
                                    : vectors * ArithmeticPerVector(nest.ops),
               slow = vectors * SlowCyclesPerVector(nest.ops);
  cost->arithmetic = runs * (arithmetic / rate + slow) + CombineCycles(nest);

  double tile_loads = 0, tile_stores = 0;
  for (const NestAccess& access : nest.accesses) {
    if (access.buffer->scope == Scope::kAccumulator) continue;
    const double per_tile = AccessesPerTile(nest, access, machine);
    const double total = TileRuns(nest, access) * executed * per_tile;
    if (access.write) {
      // Elements that lie apart leave one after the other, however many stores a cycle has room for.
      const double per_cycle = machine.row.stores_per_cycle;
      cost->stores += total / (IsApart(nest, access) ? std::min(1.0, per_cycle) : per_cycle);
      tile_stores += per_tile;
    }
    // Reductions read what they write.
    if (!access.write || nest.block->reduce != ReduceOp::kNone) {
      cost->loads += total / LoadsPerCycle(nest, access, machine);
      tile_loads += per_tile;
    }
  }
  cost->instructions = arithmetic + 4 * slow + tile_loads + tile_stores;
  CountRegisters(nest, machine, cost);
  if (cost->registers > machine.registers) {
    // Each register too many is stored and loaded again in every run of the tile.
    cost->spills = runs * (cost->registers - machine.registers) *
                   (1 / machine.row.stores_per_cycle + 1 / machine.row.loads_per_cycle);
  }
  cost->latency = LatencyCycles(nest, machine) * nest.useful;
  double iterations = 0;  // of the loops that have loops inside
  for (size_t l = 0; l + 1 < nest.tile_begin; ++l) iterations += nest.Product(0, l + 1);
  const double decode = cost->instructions > kUopCacheInstructions ? 2 : 1;
  cost->issue =
      runs * (cost->instructions + (nest.tile_begin > 0 ? kLoopInstructions : 0)) * decode / kIssuePerCycle;
  cost->overhead = kLoopCycles * iterations * nest.useful;
  if (nest.tile_begin > 0) cost->overhead += kTileCycles * runs;
  // Lanes outside the domain take a masked copy of the code.
  if (nest.lane_useful < 1) cost->overhead += 0.1 * cost->arithmetic;
}

}  // namespace mycc
