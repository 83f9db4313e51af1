// The cost model's view of scheduled IR: for each block the loops around it, its operations, and how each of
// its accesses moves through memory at each loop level. The IR is walked once; features and analytic model
// read the same numbers. Thread rule: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "codegen/ir/function.h"
#include "tuner/space/machine.h"

namespace mycc {

inline constexpr double kLineBytes = 64, kPageBytes = 4096;

// A number for each loop around a block, or for each level between them.
using PerLevel = absl::InlinedVector<double, 16>;

struct NestLoop {
  const For* loop;
  double extent;
  bool in_tile = false;    // unrolled, a vector, or inside a hardware instruction: no branch at run time
  bool reduces = false;    // moves a reduction variable of the block
  bool moves_out = false;  // moves the element that the block writes
};

// Loads, or the store, of one buffer by one block; accesses that move alike (the points of a stencil) are
// one.
struct NestAccess {
  Buffer buffer;
  bool write = false;
  int count = 1;               // how many times it stands in the block
  bool gather = false;         // the address depends on data
  bool produced_here = false;  // the buffer is written by another block of the function
  PerLevel stride;  // for each loop, the displacement of the flat address in elements; 0 where the loop does
                    // not move it
  // While the loops from number l inwards run (l = number of loops: one element): distinct elements, bytes of
  // lines, pages.
  PerLevel elements, line_bytes, pages;
};

struct OpCounts {
  double add = 0, mul = 0;
  double fused = 0;  // pairs of a multiplication and an addition that one instruction does
  double minmax = 0, compare_select = 0;
  double divide = 0, root = 0, transcendental = 0;
  double convert = 0, integer = 0, other = 0;

  double arithmetic() const { return add + mul + minmax + divide + root + transcendental + other; }
};

struct NestBlock {
  const Block* block;
  std::vector<NestLoop> loops;       // outermost first
  std::vector<NestAccess> accesses;  // the write first
  OpCounts ops;                      // of one instance, in the mean (op_counts.h)
  std::string instruction;           // of the hardware instruction it is part of; empty otherwise
  bool ahead_of_time = false;  // depends on const inputs alone, at the root: runs when weights are packed
  int group = 0;               // top-level statement: blocks of one group share loops
  size_t tile_begin = 0;       // loops from here inwards are the tile
  int lane = -1;               // the loop whose iterations are vector lanes, or -1
  double useful = 1;           // share of the instances that are inside the iteration domains
  double lane_useful = 1;      // the same for the lane loop alone
  double lane_covered = 1;     // elements along the lanes, the whole of that share

  double Product(size_t from, size_t to) const;  // of extents of loops [from, to)
  double instances() const { return Product(0, loops.size()); }
  double elem_bytes() const;                     // of the widest type that the block computes with
  double vectors(const Machine& machine) const;  // for one run of the lane loop; 1 without one
  double parallel_iterations() const;            // of the parallel loops together
  double footprint_bytes(size_t level) const;    // of all accesses outside registers
};

struct NestAlloc {
  Buffer buffer;
  size_t depth = 0;  // loops around it
};

struct FunctionNest {
  Stmt body;  // what the loops and blocks below point into
  std::vector<NestBlock> blocks;
  std::vector<NestAlloc> allocs;
  int groups = 0;
  double param_bytes = 0;       // of all parameters
  double workspace_bytes = 0;   // of intermediates outside of registers
  double parallel_regions = 0;  // entered at run time
};

// REQUIRES: scheduled IR (loops, allocations, sequences, ifs and blocks).
FunctionNest AnalyzeNest(const Function& function);

}  // namespace mycc
