// The analytic time of launches on tensor cores. Each thread block computes a tile. The tile's time is the
// largest of multiplying, moving operands from L2 to shared memory, and waiting for the copies in flight.
// After the closed forms of tritonBLAS and DeepGEMM, extended by waves of blocks that share an SM.
#include <algorithm>
#include <cmath>

#include "codegen/target/instructions.h"
#include "tuner/cost/gpu_cost.h"

namespace mycc {
namespace {

constexpr double kFeedBytesPerCycle = 54;  // from L2 to one SM, all SMs asking
// The copy engine takes as long for a box's row of 32 or 64 bytes as for one of 128: measured on an H200.
constexpr double kCyclesPerRow = 2.2, kRowBytes = 128;
constexpr double kSharedBytesPerCycle = 128;                    // that tensor cores read
constexpr double kLatency = 9e-7;                               // of a tile from memory, seconds
constexpr double kStart = 1.2e-6;                               // of a block: barriers, the first tiles
constexpr double kEpilogueBytesPerCycle = 40;                   // of one SM
constexpr double kSumBytes = 4, kHandedOverBytesPerCycle = 40;  // sums through memory, of one SM
constexpr double kRegistersBesideAccumulators = 56;

// The product that one thread block computes in one step of its ring, and the number of steps.
struct Tile {
  double elements = 1;  // of the accumulator
  double depth = 1;     // of one step
  double steps = 1;     // of one tile's ring
  double operand_bytes = 0;
  double operand_rows = 0;  // that the copy engine fetches for one step
  double columns = 8;
};

// The loop that is marked with the instruction: the tile's outermost. REQUIRES: there is one.
size_t TileBegin(const NestBlock& nest) {
  size_t l = 0;
  while (nest.loops[l].loop->marks.instruction.empty()) ++l;
  return l;
}

// Groups of warps that take turns.
double GroupsOf(const NestBlock& nest) {
  int groups = 1;
  for (const NestLoop& loop : nest.loops) groups = std::max(groups, loop.loop->marks.pingpong);
  return groups;
}

const LoopMarks& MarksOf(const NestBlock& nest) { return nest.loops[TileBegin(nest)].loop->marks; }

Tile TileOf(const NestBlock& nest) {
  Tile tile;
  const size_t begin = TileBegin(nest);
  for (size_t l = 0; l < nest.loops.size(); ++l) {
    const NestLoop& loop = nest.loops[l];
    const bool inside = l >= begin;
    if (loop.loop->loop_kind == LoopKind::kGrid) continue;
    if (!inside) {
      tile.steps *= loop.reduces ? loop.extent : 1;
    } else {
      (loop.reduces ? tile.depth : tile.elements) *= loop.extent;
    }
  }
  for (const NestAccess& access : nest.accesses) {
    if (access.write || access.buffer->scope != Scope::kShared) continue;
    const double bytes = access.elements[begin] * DTypeBytes(access.buffer->dtype);
    const auto row = static_cast<double>(access.buffer->shape.back() * DTypeBytes(access.buffer->dtype));
    tile.operand_bytes += bytes;
    tile.operand_rows += bytes / std::min(row, kRowBytes);
  }
  // The columns are the accumulator's contiguous loops: what the last dimensions hold.
  for (size_t l = nest.loops.size(); l-- > begin;) {
    const NestLoop& loop = nest.loops[l];
    if (!loop.moves_out) continue;
    tile.columns = std::max(tile.columns, loop.extent);
    break;
  }
  return tile;
}

const NestLoop* PersistentLoop(const NestBlock& nest) {
  for (const NestLoop& loop : nest.loops) {
    if (loop.loop->marks.persistent_blocks > 0) return &loop;
  }
  return nullptr;
}

// The tiles that each of the blocks has, whole and in parts.
double SharedWaves(double tiles, const NestLoop& loop) {
  const double workers = static_cast<double>(loop.loop->marks.persistent_blocks);
  const double whole = std::floor(tiles / workers);
  const StreamKGroups& stream = loop.loop->marks.stream_k;
  return whole + (tiles - whole * workers) / static_cast<double>(stream.groups * stream.members);
}

// REQUIRES: the nest is on tensor cores.
const Instruction& RowOf(const NestBlock& nest) { return *InstructionNamed(nest.instruction); }

// The threads that multiply a tile together.
double MultiplyingThreads(const NestBlock& nest) {
  const WarpGrid& warps = MarksOf(nest).warps;
  return static_cast<double>(RowOf(nest).threads) * warps.rows * warps.columns;
}

}  // namespace

GpuArithmetic MmaArithmeticOf(const NestBlock& nest, const GpuMachine& machine) {
  constexpr double kColumns = 8;             // that an instruction's cycles are told for
  const double products = nest.instances();  // padding is multiplied too
  if (InstructionNamed(nest.instruction) == nullptr)
    return {products / machine.row.fma_per_cycle, products / kWarpThreads};
  const Instruction& row = RowOf(nest);
  const double each = static_cast<double>(row.m) * row.k * kColumns;
  return {products / each * row.cycles, products / each};
}

double MmaThreads(const NestBlock& nest) {
  const double computing = MultiplyingThreads(nest);
  // And the warpgroup that copies.
  return RowOf(nest).of_warpgroups() ? computing * GroupsOf(nest) + 128 : computing;
}

double MmaSums(const NestBlock& nest) { return TileOf(nest).elements / MultiplyingThreads(nest); }

double MmaRegisters(const NestBlock& nest) {
  const Tile tile = TileOf(nest);
  // Partial sums are of 64 rows and at most 128 columns.
  const double partial = RowOf(nest).partial_depth == 0 ? 0
                         : tile.columns > 128           ? tile.columns / 4
                                                        : tile.columns / 2;
  return partial + MmaSums(nest);
}

double MmaMostRegisters(const NestBlock& nest) {
  if (RowOf(nest).of_warpgroups()) {
    const int64_t computing = MarksOf(nest).warps.rows * static_cast<int64_t>(GroupsOf(nest));
    if (const int64_t left = SplitRegisters(computing).compute; left > 0) return static_cast<double>(left);
  }
  return std::min(255.0, kRegisterFile / MmaThreads(nest));
}

MmaSeconds MmaLaunchSeconds(const NestBlock& nest, const GpuMachine& machine, double blocks,
                            double shared_bytes, double output_bytes, double dram_bytes) {
  const Tile tile = TileOf(nest);
  const GpuArithmetic arithmetic = MmaArithmeticOf(nest, machine);
  const double cycle = 1 / (machine.row.ghz * 1e9);
  double stages = 1;
  for (const NestLoop& loop : nest.loops)
    stages = std::max(stages, static_cast<double>(loop.loop->marks.pipeline.stages));
  const double threads = MmaThreads(nest);
  const double registers = std::min(255.0, MmaRegisters(nest) + kRegistersBesideAccumulators);
  const double by_registers = std::floor(kRegisterFile / (threads * std::ceil(registers / 8) * 8));
  const double by_shared = std::floor(machine.shared_bytes_of_sm / (shared_bytes + 1024));
  const NestLoop* persistent = PersistentLoop(nest);
  const double resident = persistent != nullptr ? 1 : std::max(1.0, std::min({by_registers, by_shared, 4.0}));

  // The time of one step's product. Few columns leave the tensor cores waiting for rows of a.
  const double rows = tile.elements / tile.columns;
  const double multiply = std::max(arithmetic.cycles / (blocks * tile.steps),
                                   (rows + tile.columns * std::max(1.0, rows / 64)) * tile.operand_bytes /
                                       (rows + tile.columns) / kSharedBytesPerCycle) *
                          cycle;
  const double rows_fed = RowOf(nest).of_warpgroups() ? tile.operand_rows : 0;
  const double feed = std::max(tile.operand_bytes / kFeedBytesPerCycle, rows_fed * kCyclesPerRow) * cycle;
  const double wait = kLatency / stages;
  const double epilogue = output_bytes / blocks / kEpilogueBytesPerCycle * cycle *
                              (GroupsOf(nest) > 1      ? 0.15
                               : persistent != nullptr ? 0.6
                                                       : 1.0) +
                          (GroupsOf(nest) > 1 ? 1e-7 : 4e-7);
  // Blocks go to all SMs in turn; those on one SM share it, and hide each other's latencies.
  const StreamKGroups stream = persistent != nullptr ? persistent->loop->marks.stream_k : StreamKGroups();
  const auto turns = [&](double all) {
    return stream.groups > 0 ? SharedWaves(blocks, *persistent) : std::ceil(all);
  };
  const double per_sm = turns(blocks / machine.sms);
  const double waves = turns(blocks / (machine.sms * resident));
  const double throughput = per_sm * tile.steps * std::max(multiply, feed);
  const double latency = waves * tile.steps * wait;
  // Sums that other blocks leave, one after the other.
  const double others = stream.groups > 0 ? std::ceil(1 / (waves - std::floor(waves))) : 0;
  const double added = others * tile.elements * kSumBytes / kHandedOverBytesPerCycle * cycle;
  const double ends = kStart * (persistent != nullptr ? 1 : waves) + waves * epilogue + added;
  const double memory = dram_bytes / machine.row.dram_bytes_per_second;
  const double seconds = std::max({throughput, latency, memory}) + 0.1 * std::min(throughput, memory) + ends;
  return {seconds, per_sm * tile.steps * multiply, per_sm * tile.steps * feed, latency, memory, ends};
}

}  // namespace mycc
