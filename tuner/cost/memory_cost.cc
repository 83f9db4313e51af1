// The cost of a block's memory traffic on a CPU: the bytes that each cache level brings in, and page misses.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tuner/cost/block_cost.h"

namespace mycc {
namespace {

constexpr double kUsableShare = 0.8;  // of a cache, before conflicts and other data push lines out
constexpr double kWays = 8;
constexpr double kJumpBytes = 512;  // shorter strides use neighbouring sets
constexpr double kL1Pages = 64, kL2Pages = 1536;
constexpr double kL1PageCycles = 3, kL2PageCycles = 15;  // of a miss, mostly hidden
constexpr double kWriteFactor = 2;                       // a line is read before it is written back

// The outermost level from which all of the block fits.
size_t FittingLevel(const NestBlock& nest, double capacity) {
  for (size_t level = 0; level < nest.loops.size(); ++level) {
    double bytes = 0;
    for (const NestAccess& access : nest.accesses) {
      if (access.buffer->scope != Scope::kAccumulator) bytes += CacheBytes(nest, access, level, capacity);
    }
    if (bytes <= kUsableShare * capacity) return level;
  }
  return nest.loops.size();
}

double PagesAt(const NestBlock& nest, size_t level) {
  double pages = 0;
  for (const NestAccess& access : nest.accesses) {
    if (access.buffer->scope != Scope::kAccumulator) pages += access.pages[level];
  }
  return pages;
}

// The bytes or pages that one access brings in over the whole run, when everything inside of `level` stays.
// Loops from l inwards touch `touched[l]` of them. The loops next to `level` that do not move the access find
// it still there; the first one that does shares lines between its iterations; loops further out share
// nothing.
double BroughtIn(const NestBlock& nest, const NestAccess& access, const PerLevel& touched, size_t level) {
  size_t outer = level;
  while (outer > 0 && access.stride[outer - 1] == 0) --outer;
  if (outer == 0) return touched[level];
  return touched[level] * (touched[outer - 1] / touched[outer]) * nest.Product(0, outer - 1);
}

double PageMisses(const NestBlock& nest, double entries) {
  size_t level = 0;
  while (level < nest.loops.size() && PagesAt(nest, level) > entries) ++level;
  if (level == 0) return 0;
  double misses = 0;
  for (const NestAccess& access : nest.accesses) {
    if (access.buffer->scope != Scope::kAccumulator) misses += BroughtIn(nest, access, access.pages, level);
  }
  return misses;
}

double Traffic(const NestBlock& nest, double capacity, double resident_bytes) {
  if (resident_bytes <= kUsableShare * capacity) return 0;
  const size_t level = FittingLevel(nest, capacity);
  double bytes = 0;
  for (const NestAccess& access : nest.accesses) {
    if (access.buffer->scope == Scope::kAccumulator) continue;
    // An intermediate that fits is still there from the block that made it.
    const bool warm = access.produced_here && static_cast<double>(access.buffer->bytes()) <= 0.5 * capacity;
    if (warm && level == 0) continue;
    bytes += BroughtIn(nest, access, access.line_bytes, level) * (access.write ? kWriteFactor : 1);
  }
  return bytes * nest.useful;
}

}  // namespace

double CacheBytes(const NestBlock& nest, const NestAccess& access, size_t level, double capacity) {
  const double lines = access.line_bytes[level];
  if (access.gather) return lines;
  double jumps = 1, longest = 0, jump_bytes = 0;
  for (size_t l = level; l < nest.loops.size(); ++l) {
    const double bytes = std::abs(access.stride[l]) * DTypeBytes(access.buffer->dtype);
    if (bytes < kJumpBytes) continue;
    jumps *= nest.loops[l].extent;
    if (nest.loops[l].extent > longest) longest = nest.loops[l].extent, jump_bytes = bytes;
  }
  if (longest <= kWays) return lines;
  // Jumps by a multiple of a large power of two come back to the same sets.
  const double run = std::max(kLineBytes, lines / jumps);
  const double period =
      static_cast<double>(std::gcd(static_cast<int64_t>(jump_bytes), static_cast<int64_t>(capacity / kWays)));
  return period <= run ? lines : lines * period / run;
}

double TrafficBytes(const NestBlock& nest, const NestAccess& access, double capacity) {
  return BroughtIn(nest, access, access.line_bytes, FittingLevel(nest, capacity));
}

void AddMemoryCost(const NestBlock& nest, const Machine& machine, double resident_bytes, BlockCost* cost) {
  cost->l2_bytes = Traffic(nest, machine.l1_bytes, resident_bytes);
  cost->l3_bytes = Traffic(nest, machine.l2_bytes, resident_bytes / std::max(1.0, cost->threads));
  cost->dram_bytes = Traffic(nest, machine.l3_bytes, resident_bytes);
  // One thread reaches its own share of a level's bandwidth, all together a number of shares.
  const double threads = std::max(1.0, cost->threads);
  const auto share = [threads](double filling) { return std::min(1.0, filling / threads); };
  cost->l2 = cost->l2_bytes / (machine.row.l2_bytes_per_cycle * share(machine.l2_threads));
  cost->l3 = cost->l3_bytes / (machine.row.l3_bytes_per_cycle * share(machine.l3_threads));
  cost->dram = cost->dram_bytes / (machine.row.dram_bytes_per_cycle * share(machine.dram_threads));
  cost->pages = kL1PageCycles * PageMisses(nest, kL1Pages) + kL2PageCycles * PageMisses(nest, kL2Pages);
}

}  // namespace mycc
