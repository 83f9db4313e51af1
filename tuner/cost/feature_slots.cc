#include "tuner/cost/feature_slots.h"

#include <algorithm>
#include <cmath>

#include "tuner/cost/block_cost.h"

namespace mycc {
namespace {

double Log(double x) { return std::log2(1 + std::max(0.0, x)); }
double Ratio(double a, double b) { return b > 0 ? a / b : 0; }
double Executed(const BlockView& v, double per_instance) {
  return Log(per_instance * v.nest.instances() * v.nest.useful);
}

bool IsCopy(const NestBlock& nest) {
  return nest.block->value->op == Op::kLoad && nest.block->reduce == ReduceOp::kNone;
}

double TotalCycles(const FunctionView& v, double BlockCost::*part) {
  double total = 0;
  for (size_t b = 0; b < v.cost.blocks.size(); ++b) {
    if (!v.nest.blocks[b].ahead_of_time) total += v.cost.blocks[b].*part;
  }
  return total;
}
double Share(const FunctionView& v, double BlockCost::*part) {
  double all = 0;
  for (const auto each : {&BlockCost::arithmetic, &BlockCost::loads, &BlockCost::stores, &BlockCost::issue,
                          &BlockCost::latency, &BlockCost::spills, &BlockCost::overhead, &BlockCost::l2,
                          &BlockCost::l3, &BlockCost::dram, &BlockCost::pages}) {
    all += TotalCycles(v, each);
  }
  return Ratio(TotalCycles(v, part), all);
}
template <typename Fn>
double SumBlocks(const FunctionView& v, const Fn& fn) {
  double sum = 0;
  for (size_t b = 0; b < v.nest.blocks.size(); ++b) {
    if (!v.nest.blocks[b].ahead_of_time) sum += fn(v.nest.blocks[b], v.cost.blocks[b]);
  }
  return sum;
}
double Flops(const FunctionView& v) {
  return SumBlocks(
      v, [](const NestBlock& n, const BlockCost&) { return n.ops.arithmetic() * n.instances() * n.useful; });
}

// Loops of a block: the product of extents and the number of those that `pick`.
template <typename Pick>
double LoopProduct(const BlockView& v, const Pick& pick) {
  double product = 1;
  for (size_t l = 0; l < v.nest.loops.size(); ++l) {
    if (pick(v.nest, l)) product *= v.nest.loops[l].extent;
  }
  return product;
}
template <typename Pick>
double LoopCount(const BlockView& v, const Pick& pick) {
  double count = 0;
  for (size_t l = 0; l < v.nest.loops.size(); ++l) count += pick(v.nest, l);
  return count;
}
template <LoopKind kind>
bool OfKind(const NestBlock& n, size_t l) {
  return n.loops[l].loop->loop_kind == kind;
}
bool OutsideTile(const NestBlock& n, size_t l) {
  return l < n.tile_begin && !OfKind<LoopKind::kParallel>(n, l);
}
bool InsideInstruction(const NestBlock& n, size_t l) {
  return n.loops[l].in_tile && OfKind<LoopKind::kSerial>(n, l);
}
bool ReducesInTile(const NestBlock& n, size_t l) { return l >= n.tile_begin && n.loops[l].reduces; }
bool ReducesOutside(const NestBlock& n, size_t l) { return l < n.tile_begin && n.loops[l].reduces; }

double LaneExtent(const BlockView& v) { return v.nest.lane < 0 ? 1 : v.nest.loops[v.nest.lane].extent; }
// Instances inside the outermost level whose footprint fits.
double InstancesWithin(const BlockView& v, double capacity) {
  size_t level = 0;
  while (level < v.nest.loops.size() && v.nest.footprint_bytes(level) > capacity) ++level;
  return v.nest.Product(level, v.nest.loops.size());
}
double FootprintOfInnermost(const BlockView& v, size_t loops_outside_tile) {
  const size_t tile = v.nest.tile_begin;
  return v.nest.footprint_bytes(tile > loops_outside_tile ? tile - loops_outside_tile : 0);
}
size_t FirstReduction(const NestBlock& nest) {
  size_t l = 0;
  while (l < nest.loops.size() && !nest.loops[l].reduces) ++l;
  return l;
}

constexpr Slot<FunctionView> kFunctionSlots[] = {
    {"analytic_seconds", "log2 of the analytic estimate",
     [](const FunctionView& v) { return std::log2(v.cost.seconds); }},
    {"flops", "log2 arithmetic operations", [](const FunctionView& v) { return Log(Flops(v)); }},
    {"param_bytes", "log2 bytes of all parameters",
     [](const FunctionView& v) { return Log(v.nest.param_bytes); }},
    {"workspace_bytes", "log2 bytes of intermediates",
     [](const FunctionView& v) { return Log(v.nest.workspace_bytes); }},
    {"intensity", "log2 operations per parameter byte",
     [](const FunctionView& v) { return std::log2(1e-3 + Ratio(Flops(v), v.nest.param_bytes)); }},
    {"blocks", "blocks that run in a call",
     [](const FunctionView& v) {
       return SumBlocks(v, [](const NestBlock&, const BlockCost&) { return 1.0; });
     }},
    {"groups", "statements at the root",
     [](const FunctionView& v) { return static_cast<double>(v.nest.groups); }},
    {"parallel_regions", "log2 parallel regions entered",
     [](const FunctionView& v) { return Log(v.nest.parallel_regions); }},
    {"imbalance", "work of the busiest thread / even share, by cost",
     [](const FunctionView& v) {
       return Ratio(SumBlocks(v, [](const NestBlock&, const BlockCost& c) { return c.imbalance * c.cycles; }),
                    TotalCycles(v, &BlockCost::cycles));
     }},
    {"serial_share", "share of the cycles in blocks on one thread",
     [](const FunctionView& v) {
       return Ratio(
           SumBlocks(v, [](const NestBlock&, const BlockCost& c) { return c.threads > 1 ? 0 : c.cycles; }),
           TotalCycles(v, &BlockCost::cycles));
     }},
    {"packing_share", "share of the cycles in copies",
     [](const FunctionView& v) {
       return Ratio(
           SumBlocks(v, [](const NestBlock& n, const BlockCost& c) { return IsCopy(n) ? c.cycles : 0; }),
           TotalCycles(v, &BlockCost::cycles));
     }},
    {"packing_bytes_per_flop", "log2 bytes copied for each 1000 operations",
     [](const FunctionView& v) {
       const double bytes = SumBlocks(v, [](const NestBlock& n, const BlockCost&) {
         return IsCopy(n) ? n.elem_bytes() * n.instances() * n.useful : 0;
       });
       return Log(Ratio(1000 * bytes, Flops(v)));
     }},
    {"padded", "instances / useful instances, by cost",
     [](const FunctionView& v) {
       return Ratio(SumBlocks(v, [](const NestBlock& n, const BlockCost& c) { return c.cycles / n.useful; }),
                    TotalCycles(v, &BlockCost::cycles));
     }},
    {"share_arithmetic", "share of the resource cycles",
     [](const FunctionView& v) { return Share(v, &BlockCost::arithmetic); }},
    {"share_loads", "share of the resource cycles",
     [](const FunctionView& v) { return Share(v, &BlockCost::loads); }},
    {"share_stores", "share of the resource cycles",
     [](const FunctionView& v) { return Share(v, &BlockCost::stores); }},
    {"share_issue", "share of the resource cycles",
     [](const FunctionView& v) { return Share(v, &BlockCost::issue); }},
    {"share_latency", "share of the resource cycles",
     [](const FunctionView& v) { return Share(v, &BlockCost::latency); }},
    {"share_spills", "share of the resource cycles",
     [](const FunctionView& v) { return Share(v, &BlockCost::spills); }},
    {"share_overhead", "share of the resource cycles",
     [](const FunctionView& v) { return Share(v, &BlockCost::overhead); }},
    {"share_l2", "share of the resource cycles",
     [](const FunctionView& v) { return Share(v, &BlockCost::l2); }},
    {"share_l3", "share of the resource cycles",
     [](const FunctionView& v) { return Share(v, &BlockCost::l3); }},
    {"share_dram", "share of the resource cycles",
     [](const FunctionView& v) { return Share(v, &BlockCost::dram); }},
    {"share_pages", "share of the resource cycles",
     [](const FunctionView& v) { return Share(v, &BlockCost::pages); }},
    {"target_threads", "threads of the target", [](const FunctionView& v) { return v.machine.threads; }},
    {"target_l1", "log2 bytes of L1", [](const FunctionView& v) { return Log(v.machine.l1_bytes); }},
    {"target_l2", "log2 bytes of L2", [](const FunctionView& v) { return Log(v.machine.l2_bytes); }},
    {"target_vector", "bytes of a vector register",
     [](const FunctionView& v) { return v.machine.vector_bytes; }},
    {"target_registers", "vector registers", [](const FunctionView& v) { return v.machine.registers; }},
};

constexpr Slot<BlockView> kBlockSlots[] = {
    {"add", "log2 additions executed", [](const BlockView& v) { return Executed(v, v.nest.ops.add); }},
    {"mul", "log2 multiplications", [](const BlockView& v) { return Executed(v, v.nest.ops.mul); }},
    {"fused", "log2 pairs of both in one instruction",
     [](const BlockView& v) { return Executed(v, v.nest.ops.fused); }},
    {"minmax", "log2 minima and maxima", [](const BlockView& v) { return Executed(v, v.nest.ops.minmax); }},
    {"compare_select", "log2 comparisons and selections",
     [](const BlockView& v) { return Executed(v, v.nest.ops.compare_select); }},
    {"divide", "log2 divisions", [](const BlockView& v) { return Executed(v, v.nest.ops.divide); }},
    {"root", "log2 square roots", [](const BlockView& v) { return Executed(v, v.nest.ops.root); }},
    {"transcendental", "log2 exp, log, tanh, ...",
     [](const BlockView& v) { return Executed(v, v.nest.ops.transcendental); }},
    {"convert", "log2 conversions", [](const BlockView& v) { return Executed(v, v.nest.ops.convert); }},
    {"integer", "log2 integer operations on values",
     [](const BlockView& v) { return Executed(v, v.nest.ops.integer); }},
    {"is_copy", "1 for a plain copy", [](const BlockView& v) { return IsCopy(v.nest) ? 1.0 : 0.0; }},
    {"is_reduction", "1 for a reduction",
     [](const BlockView& v) { return v.nest.block->reduce != ReduceOp::kNone ? 1.0 : 0.0; }},
    {"is_instruction", "1 inside a hardware instruction",
     [](const BlockView& v) { return v.nest.instruction.empty() ? 0.0 : 1.0; }},
    {"elem_bytes", "bytes of the widest type", [](const BlockView& v) { return v.nest.elem_bytes(); }},
    {"loops", "loops around the block",
     [](const BlockView& v) { return static_cast<double>(v.nest.loops.size()); }},
    {"serial_product", "log2 iterations of serial loops outside the tile",
     [](const BlockView& v) { return Log(LoopProduct(v, OutsideTile)); }},
    {"serial_count", "serial loops outside the tile",
     [](const BlockView& v) { return LoopCount(v, OutsideTile); }},
    {"parallel_product", "log2 iterations of parallel loops",
     [](const BlockView& v) { return Log(LoopProduct(v, OfKind<LoopKind::kParallel>)); }},
    {"parallel_count", "parallel loops",
     [](const BlockView& v) { return LoopCount(v, OfKind<LoopKind::kParallel>); }},
    {"vector_product", "iterations of the vector loop",
     [](const BlockView& v) { return LoopProduct(v, OfKind<LoopKind::kVector>); }},
    {"unroll_product", "log2 iterations of unrolled loops",
     [](const BlockView& v) { return Log(LoopProduct(v, OfKind<LoopKind::kUnroll>)); }},
    {"unroll_count", "unrolled loops",
     [](const BlockView& v) { return LoopCount(v, OfKind<LoopKind::kUnroll>); }},
    {"instruction_product", "log2 iterations of loops inside an instruction",
     [](const BlockView& v) { return Log(LoopProduct(v, InsideInstruction)); }},
    {"reduce_in_tile", "log2 reduction steps inside the tile",
     [](const BlockView& v) { return Log(LoopProduct(v, ReducesInTile)); }},
    {"reduce_outside", "log2 reduction steps outside the tile",
     [](const BlockView& v) { return Log(LoopProduct(v, ReducesOutside)); }},
    {"outside_reduction", "log2 iterations outside of the outermost reduction loop",
     [](const BlockView& v) { return Log(v.nest.Product(0, FirstReduction(v.nest))); }},
    {"innermost_extent", "log2 iterations of the loop around the tile",
     [](const BlockView& v) {
       return v.nest.tile_begin == 0 ? 0 : Log(v.nest.loops[v.nest.tile_begin - 1].extent);
     }},
    {"next_extent", "log2 iterations of the loop around that one",
     [](const BlockView& v) {
       return v.nest.tile_begin < 2 ? 0 : Log(v.nest.loops[v.nest.tile_begin - 2].extent);
     }},
    {"lanes", "elements side by side", [](const BlockView& v) { return LaneExtent(v); }},
    {"lane_fill", "share of the vector registers' lanes in use",
     [](const BlockView& v) {
       const double lanes = v.function.machine.vector_bytes / v.nest.elem_bytes();
       return LaneExtent(v) / (std::ceil(LaneExtent(v) / lanes) * lanes);
     }},
    {"lane_useful", "share of the lane loop inside the domain",
     [](const BlockView& v) { return v.nest.lane_useful; }},
    {"useful", "share of the instances inside the domain", [](const BlockView& v) { return v.nest.useful; }},
    {"accumulators", "vector registers that carry the output",
     [](const BlockView& v) { return std::min(v.cost.accumulators, 256.0); }},
    {"register_pressure", "vector registers / those of the target",
     [](const BlockView& v) { return std::min(v.cost.registers / v.function.machine.registers, 16.0); }},
    {"arithmetic_per_load", "arithmetic cycles / load cycles",
     [](const BlockView& v) { return Log(Ratio(v.cost.arithmetic, v.cost.loads)); }},
    {"latency_per_arithmetic", "latency cycles / arithmetic cycles",
     [](const BlockView& v) { return Log(Ratio(v.cost.latency, v.cost.arithmetic)); }},
    {"instructions", "log2 instructions of the tile",
     [](const BlockView& v) { return Log(v.cost.instructions); }},
    {"cycles", "log2 cycles in all", [](const BlockView& v) { return Log(v.cost.cycles); }},
    {"cycles_core", "log2 cycles of arithmetic", [](const BlockView& v) { return Log(v.cost.arithmetic); }},
    {"cycles_loads", "log2 cycles of loads", [](const BlockView& v) { return Log(v.cost.loads); }},
    {"cycles_stores", "log2 cycles of stores", [](const BlockView& v) { return Log(v.cost.stores); }},
    {"cycles_issue", "log2 cycles of instruction issue",
     [](const BlockView& v) { return Log(v.cost.issue); }},
    {"cycles_spills", "log2 cycles of spills", [](const BlockView& v) { return Log(v.cost.spills); }},
    {"cycles_overhead", "log2 cycles of loops", [](const BlockView& v) { return Log(v.cost.overhead); }},
    {"cycles_l2", "log2 cycles of traffic from L2", [](const BlockView& v) { return Log(v.cost.l2); }},
    {"cycles_l3", "log2 cycles of traffic from L3", [](const BlockView& v) { return Log(v.cost.l3); }},
    {"cycles_dram", "log2 cycles of traffic from memory",
     [](const BlockView& v) { return Log(v.cost.dram); }},
    {"cycles_pages", "log2 cycles of page walks", [](const BlockView& v) { return Log(v.cost.pages); }},
    {"threads", "threads that share the work", [](const BlockView& v) { return v.cost.threads; }},
    {"imbalance", "work of the busiest thread / even share",
     [](const BlockView& v) { return v.cost.imbalance; }},
    {"gpu_blocks", "log2 thread blocks of its launch",
     [](const BlockView& v) { return Log(v.cost.gpu.blocks); }},
    {"gpu_threads", "threads of a block", [](const BlockView& v) { return v.cost.gpu.threads; }},
    {"gpu_waves", "turns of blocks on all SMs",
     [](const BlockView& v) { return std::min(v.cost.gpu.waves, 64.0); }},
    {"gpu_occupancy", "share of an SM's threads in use",
     [](const BlockView& v) { return v.cost.gpu.occupancy; }},
    {"gpu_shared", "log2 bytes of shared memory of a block",
     [](const BlockView& v) { return Log(v.cost.gpu.shared_bytes); }},
    {"gpu_coalescing", "bytes asked for / bytes of their sectors",
     [](const BlockView& v) { return v.cost.gpu.coalescing; }},
    {"gpu_conflicts", "turns in shared memory / turns without conflicts",
     [](const BlockView& v) { return v.cost.gpu.conflicts; }},
    {"gpu_in_flight", "log2 bytes that an SM waits for at a time",
     [](const BlockView& v) { return Log(v.cost.gpu.in_flight_bytes); }},
    {"footprint_tile", "log2 bytes that one run of the tile touches",
     [](const BlockView& v) { return Log(FootprintOfInnermost(v, 0)); }},
    {"footprint_1_l1", "bytes of the loop around the tile / L1",
     [](const BlockView& v) { return Log(FootprintOfInnermost(v, 1) / v.function.machine.l1_bytes); }},
    {"footprint_2_l1", "bytes of two loops around the tile / L1",
     [](const BlockView& v) { return Log(FootprintOfInnermost(v, 2) / v.function.machine.l1_bytes); }},
    {"footprint_2_l2", "the same / L2",
     [](const BlockView& v) { return Log(FootprintOfInnermost(v, 2) / v.function.machine.l2_bytes); }},
    {"footprint_3_l2", "bytes of three loops around the tile / L2",
     [](const BlockView& v) { return Log(FootprintOfInnermost(v, 3) / v.function.machine.l2_bytes); }},
    {"footprint_all_l2", "bytes of all loops / L2",
     [](const BlockView& v) { return Log(v.nest.footprint_bytes(0) / v.function.machine.l2_bytes); }},
    {"instances_in_l1", "log2 instances whose data fits L1",
     [](const BlockView& v) { return Log(InstancesWithin(v, v.function.machine.l1_bytes)); }},
    {"instances_in_l2", "log2 instances whose data fits L2",
     [](const BlockView& v) { return Log(InstancesWithin(v, v.function.machine.l2_bytes)); }},
    {"streams", "accesses that move with the loop around the tile",
     [](const BlockView& v) {
       double streams = 0;
       for (const NestAccess& a : v.nest.accesses)
         streams += v.nest.tile_begin > 0 && a.stride[v.nest.tile_begin - 1] != 0;
       return streams;
     }},
};

}  // namespace

std::span<const Slot<FunctionView>> FunctionSlots() { return kFunctionSlots; }
std::span<const Slot<BlockView>> BlockSlots() { return kBlockSlots; }

double IntensityAt(const BlockView& block, int point) {
  const double wanted = std::log2(block.nest.instances()) * point / (kCurvePoints - 1);
  size_t level = block.nest.loops.size();
  while (level > 0 && std::log2(block.nest.Product(level, block.nest.loops.size())) < wanted - 1e-9) --level;
  const double ops =
      block.nest.Product(level, block.nest.loops.size()) * std::max(0.5, block.nest.ops.arithmetic());
  return Log(ops / std::max(1.0, block.nest.footprint_bytes(level)));
}

}  // namespace mycc
