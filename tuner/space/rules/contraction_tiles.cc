#include "tuner/space/rules/contraction_tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tuner/space/machine.h"
#include "tuner/space/rules/tiles.h"

namespace mycc {
namespace {

// Cycles for one step of k in a tile of r rows and v vectors: bound by multiply-adds, by loads, or by the
// latency of one multiply-add, which each accumulator waits for. Loads, and a panel of b that comes from L2,
// hide behind the multiply-adds, but not wholly.
double TileCycles(const MachineRow& machine, int64_t vector_bytes, int64_t rows, int64_t vectors) {
  constexpr double kOverhead = 0.1, kShown = 0.15;
  const auto r = static_cast<double>(rows), v = static_cast<double>(vectors);
  const double loads = v / machine.loads_per_cycle + r / machine.broadcasts_per_cycle;
  const double from_l2 = v * static_cast<double>(vector_bytes) / machine.l2_bytes_per_cycle;
  return std::max({r * v / machine.fma_per_cycle, loads, machine.fma_latency}) + kShown * (loads + from_l2) +
         kOverhead;
}

}  // namespace

int64_t TileRegisters(const Target& target) {
  // Without FMA a product has a register of its own before it is added, and SSE2 overwrites a factor by it.
  const CpuFeatures features = FeaturesOf(target);
  return VectorRegisters(target) - (features.fma ? 0 : features.avx ? 1 : 2);
}

bool FitsRegisters(int64_t mr, int64_t nv, int64_t registers) {
  return mr * nv + nv + 1 <= registers || (mr == 1 && 2 * nv + 1 <= 2 * registers && nv <= registers - 4);
}

double StepCycles(const TileChoice& tile, int64_t m, int64_t n, int64_t lanes, const Target& target) {
  const int64_t mr = tile.mr, nv = tile.nv;
  const MachineRow& machine = MachineOf(target);
  const int64_t vectors = CeilDiv(n, lanes), m_rest = m % mr, v_rest = vectors % nv;
  double cycles = 0;
  for (const auto& [rows, row_tiles] : {std::pair{mr, m / mr}, {m_rest, int64_t{m_rest > 0}}}) {
    for (const auto& [columns, column_tiles] : {std::pair{nv, vectors / nv}, {v_rest, int64_t{v_rest > 0}}}) {
      if (row_tiles && column_tiles)
        cycles += static_cast<double>(row_tiles * column_tiles) *
                  TileCycles(machine, VectorBytes(target), rows, columns);
    }
  }
  return cycles;
}

bool FitsTileRegisters(int64_t mr, int64_t nv) {
  const int64_t rows = CeilDiv(mr, 16);
  return rows * nv + std::min(rows, nv) + std::min<int64_t>(std::max(rows, nv), 2) <= 8;
}

TileChoice BestTileRegisters(int64_t m, int64_t n) {
  if (m <= 16) return {16, std::min<int64_t>(CeilDiv(n, 16), 3)};
  if (n <= 16) return {std::min<int64_t>(RoundUp(m, 16), 48), 1};
  return {32, 2};
}

TileChoice BestWindowRegisters(int64_t m, int64_t n, int64_t most_lines) {
  // A last tile of few registers waits for its own sums, so all tiles of a line have about as many.
  const int64_t tiles = CeilDiv(m, 16), parts = CeilDiv(tiles, kMostTiles);
  if (tiles > 2 || most_lines < 2) return {16 * CeilDiv(tiles, parts), 1};
  if (tiles == 2) return {32, 1, 2};
  return n > 16 ? TileChoice{16, 2, 2} : TileChoice{16, 1, std::min<int64_t>(most_lines, 4)};
}

TileChoice BestTile(int64_t m, int64_t n, int64_t lanes, int64_t most_rows, const Target& target) {
  // The tile of fewer rows wins among equals: its last one is less unlike the others.
  constexpr double kLess = 1 - 1e-9;
  TileChoice best{1, 1};
  double best_cycles = std::numeric_limits<double>::infinity();
  const int64_t registers = TileRegisters(target);
  for (int64_t nv : kVectorsInTile) {
    if (nv > 1 && (nv - 1) * lanes >= n) continue;
    for (int64_t mr = 1; mr <= std::min(most_rows, std::max<int64_t>(m, 1)); ++mr) {
      if (!FitsRegisters(mr, nv, registers)) continue;
      const double cycles = StepCycles({mr, nv}, m, n, lanes, target);
      if (cycles < best_cycles * kLess) {
        best = {mr, nv};
        best_cycles = cycles;
      }
    }
  }
  return best;
}

// The cheapest blocks for the busiest thread: its multiply-adds, and the part that shows of bringing a's rows
// and b's panels to each block.
BlockChoice BestBlock(const BlockProblem& p, const Target& target) {
  constexpr double kShown = 0.3;
  const Machine machine(target);
  const auto bytes = static_cast<double>(p.bytes);
  const double lanes = machine.vector_bytes / bytes;
  const auto cycles_a_byte = [&](double size) {
    if (size <= machine.l2_bytes) return 1 / machine.row.l2_bytes_per_cycle;
    return 1 / (size <= machine.l3_bytes ? machine.row.l3_bytes_per_cycle : machine.row.dram_bytes_per_cycle);
  };
  const double a_cycles = cycles_a_byte(static_cast<double>(p.m * p.k * p.bytes));
  const double b_cycles = cycles_a_byte(static_cast<double>(p.n * p.k * p.bytes));
  const int64_t m_tiles = CeilDiv(p.m, p.mr), n_tiles = CeilDiv(p.n, p.nr);
  BlockChoice best{1, 1, std::numeric_limits<double>::infinity()};
  for (int64_t mt : TileCounts(m_tiles)) {
    for (int64_t nt : TileCounts(n_tiles)) {
      if (mt > p.max_mt && mt > 1) continue;
      const int64_t blocks = CeilDiv(p.other * CeilDiv(m_tiles, mt) * CeilDiv(n_tiles, nt), target.threads);
      const auto rows = static_cast<double>(std::min(mt * p.mr, p.m)),
                 columns = static_cast<double>(std::min(nt * p.nr, p.n));
      const double multiply_adds = rows * columns / (lanes * machine.row.fma_per_cycle);
      const double brought = bytes * (rows * a_cycles + columns * b_cycles);
      const double cycles = static_cast<double>(blocks * p.k) * (multiply_adds + kShown * brought);
      if (cycles < best.cycles) best = {mt, nt, cycles};
    }
  }
  return best;
}

// The bytes of one block: its rows of a stay in L1 while b's panels pass by, or come again for every panel.
double BytesFromL2(double a_bytes, double b_bytes, double panels, double l1_bytes) {
  if (a_bytes > l1_bytes / 3) return a_bytes * std::ceil(panels) + b_bytes;
  return a_bytes + (b_bytes > l1_bytes * 2 / 3 ? b_bytes : 0);
}

// The busiest thread's cycles: products, and next to them what comes from L2 and from beyond it (each block's
// rows and panels).
BlockChoice BestTileBlock(const BlockProblem& p, const Target& target) {
  constexpr double kShown = 0.5, kBytesPerCycle = 1024;  // of both operands' products, in bytes of depth
  const Machine machine(target);
  const int64_t m_tiles = CeilDiv(p.m, p.mr), n_tiles = CeilDiv(p.n, p.nr);
  const double row_bytes = static_cast<double>(p.k * p.bytes);
  const bool b_stays =
      static_cast<double>(p.n) * row_bytes <= machine.l2_bytes / 2;  // in L2, from rows to rows
  BlockChoice best{1, 1, std::numeric_limits<double>::infinity()};
  for (const int64_t mt : TileCounts(m_tiles)) {
    if (mt > 1 && static_cast<double>(mt * p.mr) * row_bytes > machine.l2_bytes / 3) continue;
    for (const int64_t nt : TileCounts(n_tiles)) {
      const auto n_blocks = static_cast<double>(CeilDiv(n_tiles, nt));
      const int64_t blocks = CeilDiv(p.other * CeilDiv(m_tiles, mt) * CeilDiv(n_tiles, nt), target.threads);
      const auto rows = static_cast<double>(std::min(mt * p.mr, p.m)),
                 columns = static_cast<double>(std::min(nt * p.nr, p.n));
      const double products = rows * columns * row_bytes / kBytesPerCycle;
      const double from_l2 =
          BytesFromL2(rows * row_bytes, columns * row_bytes, columns / static_cast<double>(p.nr),
                      static_cast<double>(target.l1d_bytes)) /
          machine.row.l2_bytes_per_cycle;
      const double from_l3 =
          (rows / n_blocks + (b_stays ? 0 : columns)) * row_bytes / machine.row.l3_bytes_per_cycle;
      const double cycles = static_cast<double>(blocks) * (products + kShown * (from_l2 + from_l3));
      if (cycles < best.cycles) best = {mt, nt, cycles};
    }
  }
  return best;
}

}  // namespace mycc
