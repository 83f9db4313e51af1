// The slots of what primitives leave on loops for lowering: the shape of a hardware instruction's tile,
// prefetching, the ring of stages, clusters and persistent blocks. They are 0 where a schedule has none.
#include <algorithm>
#include <cmath>

#include "codegen/target/instructions.h"
#include "tuner/cost/feature_slots.h"

namespace mycc {
namespace {

double LogOf(double x) { return std::log2(1 + std::max(0.0, x)); }

// The largest value of a mark over the loops around the block.
template <typename Mark>
double MostOf(const BlockView& v, const Mark& mark) {
  double most = 0;
  for (const NestLoop& loop : v.nest.loops)
    most = std::max(most, static_cast<double>(mark(loop.loop->marks)));
  return most;
}

// The first loop of the instruction's tile; the first of the unrolled tile where there is no instruction.
size_t FirstOfTile(const NestBlock& nest) {
  for (size_t l = 0; l < nest.loops.size(); ++l) {
    if (!nest.loops[l].loop->marks.instruction.empty()) return l;
  }
  return nest.tile_begin;
}

struct TileShape {
  double rows = 1, columns = 1, depth = 1;
};

// Columns are the loop along which the output is contiguous.
TileShape ShapeOfTile(const NestBlock& nest) {
  TileShape shape;
  for (size_t l = FirstOfTile(nest); l < nest.loops.size(); ++l) {
    const NestLoop& loop = nest.loops[l];
    if (loop.reduces) {
      shape.depth *= loop.extent;
    } else if (loop.moves_out) {
      (std::abs(nest.accesses[0].stride[l]) == 1 ? shape.columns : shape.rows) *= loop.extent;
    }
  }
  return shape;
}

// 1 for a block that an instruction of the class executes.
double IsOfClass(const BlockView& v, InstructionClass kind) {
  const Instruction* row = InstructionNamed(v.nest.instruction);
  return row != nullptr && row->kind == kind ? 1 : 0;
}

double ClusterBlocks(const BlockView& v) {
  for (const NestLoop& loop : v.nest.loops) {
    if (loop.loop->marks.multicast_cluster) return loop.extent;
  }
  return MostOf(v, [](const LoopMarks& marks) { return marks.cluster_reduce_blocks; });
}

constexpr Slot<BlockView> kMarkSlots[] = {
    {"tile_rows", "log2 rows of the instruction's or unrolled tile",
     [](const BlockView& v) { return std::log2(ShapeOfTile(v.nest).rows); }},
    {"tile_columns", "log2 columns of that tile",
     [](const BlockView& v) { return std::log2(ShapeOfTile(v.nest).columns); }},
    {"tile_depth", "log2 reduction steps of that tile",
     [](const BlockView& v) { return std::log2(ShapeOfTile(v.nest).depth); }},
    {"wgmma", "1 for an instruction of a warpgroup",
     [](const BlockView& v) { return IsOfClass(v, InstructionClass::kWarpgroup); }},
    {"mma", "1 for a tensor-core instruction of a warp",
     [](const BlockView& v) { return IsOfClass(v, InstructionClass::kWarp); }},
    {"amx", "1 for an instruction on tile registers",
     [](const BlockView& v) { return IsOfClass(v, InstructionClass::kTile); }},
    {"warp_rows", "warps, or warpgroups, along the rows of the tile",
     [](const BlockView& v) {
       return MostOf(v, [](const LoopMarks& m) { return m.instruction.empty() ? 0 : m.warps.rows; });
     }},
    {"warp_columns", "warps, or warpgroups, along its columns",
     [](const BlockView& v) {
       return MostOf(v, [](const LoopMarks& m) { return m.instruction.empty() ? 0 : m.warps.columns; });
     }},
    {"prefetch_rows", "log2 iterations that the rows' operand is prefetched ahead",
     [](const BlockView& v) { return LogOf(MostOf(v, [](const LoopMarks& m) { return m.rows_ahead; })); }},
    {"prefetch_lanes", "log2 iterations that the lanes' operand is prefetched ahead",
     [](const BlockView& v) { return LogOf(MostOf(v, [](const LoopMarks& m) { return m.lanes_ahead; })); }},
    {"prefetch_sums", "1 when the memory of the sums is prefetched",
     [](const BlockView& v) { return MostOf(v, [](const LoopMarks& m) { return m.fetches_sums; }); }},
    {"prefetch_next", "1 when the next iteration's inputs are prefetched",
     [](const BlockView& v) { return MostOf(v, [](const LoopMarks& m) { return m.fetches_next; }); }},
    {"nontemporal", "1 when stores bypass the caches",
     [](const BlockView& v) { return MostOf(v, [](const LoopMarks& m) { return m.nontemporal; }); }},
    {"stages", "stages of the ring of copies into shared memory",
     [](const BlockView& v) { return MostOf(v, [](const LoopMarks& m) { return m.pipeline.stages; }); }},
    {"bulk_copies", "1 when a warp of its own copies",
     [](const BlockView& v) {
       return MostOf(v, [](const LoopMarks& m) { return m.pipeline.kind == PipelineKind::kBulk; });
     }},
    {"cluster", "thread blocks of a cluster", ClusterBlocks},
    {"multicast", "1 when a cluster loads shared tiles once",
     [](const BlockView& v) { return MostOf(v, [](const LoopMarks& m) { return m.multicast_cluster; }); }},
    {"persistent", "log2 thread blocks that share all iterations",
     [](const BlockView& v) {
       return LogOf(MostOf(v, [](const LoopMarks& m) { return m.persistent_blocks; }));
     }},
    {"stream_k", "log2 blocks that share iterations by steps",
     [](const BlockView& v) {
       return LogOf(MostOf(v, [](const LoopMarks& m) { return m.stream_k.groups * m.stream_k.members; }));
     }},
    {"pingpong", "groups of warps that take turns",
     [](const BlockView& v) { return MostOf(v, [](const LoopMarks& m) { return m.pingpong; }); }},
    {"blocks_per_sm", "thread blocks that must fit on an SM",
     [](const BlockView& v) { return MostOf(v, [](const LoopMarks& m) { return m.min_blocks_per_sm; }); }},
};

}  // namespace

std::span<const Slot<BlockView>> MarkSlots() { return kMarkSlots; }

}  // namespace mycc
