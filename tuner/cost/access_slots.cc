// The slots of one buffer that a statement accesses: its bytes, its strides, when it is met again, its
// layout.
#include <algorithm>
#include <cmath>

#include "tuner/cost/block_cost.h"
#include "tuner/cost/feature_slots.h"

namespace mycc {
namespace {

double LogBytes(double x) { return std::log2(1 + std::max(0.0, x)); }
double ShareOf(double a, double b) { return b > 0 ? a / b : 0; }
double LaneStride(const AccessView& v) {
  return v.block.nest.lane < 0 ? 0 : std::abs(v.access.stride[v.block.nest.lane]);
}
bool HasLane(const AccessView& v) { return v.block.nest.lane >= 0 && !v.access.gather; }
// The loop outwards of the tile that first leaves the access where it is, and so meets it again; the number
// of loops when there is none.
size_t ReuseLoop(const AccessView& v) {
  for (size_t l = v.block.nest.tile_begin; l-- > 0;) {
    if (v.access.stride[l] == 0 && v.block.nest.loops[l].extent > 1) return l;
  }
  return v.block.nest.loops.size();
}
bool Reused(const AccessView& v) { return ReuseLoop(v) < v.block.nest.loops.size(); }

constexpr Slot<AccessView> kAccessSlots[] = {
    {"present", "1 when the block has this access", [](const AccessView&) { return 1.0; }},
    {"write", "1 for the written buffer", [](const AccessView& v) { return v.access.write ? 1.0 : 0.0; }},
    {"count", "times it is accessed by one instance",
     [](const AccessView& v) { return static_cast<double>(v.access.count); }},
    {"bytes", "log2 bytes accessed, each time counted",
     [](const AccessView& v) {
       return LogBytes(DTypeBytes(v.access.buffer->dtype) * v.access.count * v.block.nest.instances() *
                       v.block.nest.useful);
     }},
    {"unique_bytes", "log2 different bytes",
     [](const AccessView& v) { return LogBytes(v.access.elements[0] * DTypeBytes(v.access.buffer->dtype)); }},
    {"unique_lines", "log2 different lines",
     [](const AccessView& v) { return LogBytes(v.access.line_bytes[0] / kLineBytes); }},
    {"tile_bytes", "log2 bytes of one run of the tile",
     [](const AccessView& v) {
       return LogBytes(v.access.elements[v.block.nest.tile_begin] * DTypeBytes(v.access.buffer->dtype));
     }},
    {"tile_line_use", "share of the tile's lines in use",
     [](const AccessView& v) {
       const size_t tile = v.block.nest.tile_begin;
       return ShareOf(v.access.elements[tile] * DTypeBytes(v.access.buffer->dtype),
                      v.access.line_bytes[tile]);
     }},
    {"traffic_l2", "log2 bytes brought into L1",
     [](const AccessView& v) {
       return LogBytes(TrafficBytes(v.block.nest, v.access, v.block.function.machine.l1_bytes));
     }},
    {"traffic_l3", "log2 bytes brought into L2",
     [](const AccessView& v) {
       return LogBytes(TrafficBytes(v.block.nest, v.access, v.block.function.machine.l2_bytes));
     }},
    {"lane_unit", "1 when lanes are neighbours in memory",
     [](const AccessView& v) { return HasLane(v) && LaneStride(v) == 1 ? 1.0 : 0.0; }},
    {"lane_broadcast", "1 when all lanes are one element",
     [](const AccessView& v) { return HasLane(v) && LaneStride(v) == 0 ? 1.0 : 0.0; }},
    {"lane_strided", "log2 stride of the lanes when neither",
     [](const AccessView& v) { return HasLane(v) && LaneStride(v) > 1 ? LogBytes(LaneStride(v)) : 0.0; }},
    {"gather", "1 when the address depends on data",
     [](const AccessView& v) { return v.access.gather ? 1.0 : 0.0; }},
    {"reuse_count", "log2 times the nearest reusing loop meets the data again",
     [](const AccessView& v) { return Reused(v) ? LogBytes(v.block.nest.loops[ReuseLoop(v)].extent) : 0; }},
    {"reuse_bytes", "log2 bytes the block touches between two uses",
     [](const AccessView& v) {
       return Reused(v) ? LogBytes(v.block.nest.footprint_bytes(ReuseLoop(v) + 1)) : 0;
     }},
    {"reuse_instances", "log2 instances between two uses",
     [](const AccessView& v) {
       return Reused(v) ? LogBytes(v.block.nest.Product(ReuseLoop(v) + 1, v.block.nest.loops.size())) : 0;
     }},
    {"pages", "log2 pages of two loops around the tile",
     [](const AccessView& v) {
       return LogBytes(v.access.pages[v.block.nest.tile_begin > 2 ? v.block.nest.tile_begin - 2 : 0]);
     }},
    {"conflicts", "log2 bytes of L1 it needs / bytes of its lines: strides that meet in few sets",
     [](const AccessView& v) {
       const size_t level = v.block.nest.tile_begin > 0 ? v.block.nest.tile_begin - 1 : 0;
       return LogBytes(ShareOf(CacheBytes(v.block.nest, v.access, level, v.block.function.machine.l1_bytes),
                               v.access.line_bytes[level]) -
                       1);
     }},
    {"in_registers", "1 for an accumulator",
     [](const AccessView& v) { return v.access.buffer->scope == Scope::kAccumulator ? 1.0 : 0.0; }},
    {"row_pad", "log2 elements between rows in shared memory",
     [](const AccessView& v) { return LogBytes(static_cast<double>(v.access.buffer->layout.RowPad())); }},
    {"swizzle", "log2 bytes of a swizzled row",
     [](const AccessView& v) { return LogBytes(static_cast<double>(v.access.buffer->swizzle_bytes())); }},
    {"shared", "1 for a buffer in shared memory",
     [](const AccessView& v) { return v.access.buffer->scope == Scope::kShared ? 1.0 : 0.0; }},
    {"packed", "1 for a packed or local copy",
     [](const AccessView& v) {
       return v.access.buffer->scope == Scope::kPacked || v.access.buffer->scope == Scope::kLocal ? 1.0 : 0.0;
     }},
};

}  // namespace

std::span<const Slot<AccessView>> AccessSlots() { return kAccessSlots; }

}  // namespace mycc
