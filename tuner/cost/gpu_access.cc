#include "tuner/cost/gpu_access.h"

#include <algorithm>
#include <array>

#include "codegen/expr/affine.h"
#include "codegen/expr/eval.h"
#include "codegen/expr/integers.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

// The values of some loop variables; all others are at their starts.
using Point = std::vector<std::pair<const VarNode*, int64_t>>;

// The context of indices at a point. Elements of other tensors, which an index may load, are scattered.
class PointOfLoops : public EvalContext {
 public:
  explicit PointOfLoops(const Point& point) : point_(point) {}

  int64_t VarValue(const VarNode& var) const override {
    for (const auto& [known, value] : point_) {
      if (known == &var) return value;
    }
    return 0;
  }

  Scalar LoadElement(const BufferNode&, const std::vector<int64_t>& indices) const override {
    uint64_t hash = 17;
    for (const int64_t index : indices) hash = hash * 31 + static_cast<uint64_t>(index);
    const auto scattered = static_cast<int64_t>(hash * 2654435761u % 1000003);
    return {static_cast<double>(scattered), scattered};
  }

 private:
  const Point& point_;
};

// A place of a buffer over loop variables, and how its loops move it.
class Place {
 public:
  Place(const NestBlock& nest, const Buffer& buffer, const std::vector<Expr>& indices, const VarMap& bindings)
      : bytes_(DTypeBytes(buffer->dtype)), moves_(nest.loops.size()) {
    Expr address = IntConst(0);
    for (size_t d = 0; d < indices.size(); ++d)
      address = address + Substitute(indices[d], bindings) * StrideOf(*buffer, static_cast<int>(d));
    address_ = ToLinear(address);
    start_ = AddressAt({});
    for (size_t l = 0; l < moves_.size(); ++l) {
      // A quotient may be constant for a few iterations; then the last iteration decides.
      for (const int64_t at : {int64_t{1}, static_cast<int64_t>(nest.loops[l].extent) - 1}) {
        if (!moves_[l] && nest.loops[l].extent > 1)
          moves_[l] = AddressAt({{nest.loops[l].loop->var.get(), at}}) != start_;
      }
    }
  }

  bool moves(size_t loop) const { return moves_[loop]; }
  int64_t start() const { return start_; }
  // In bytes.
  int64_t AddressAt(const Point& loops) const {
    const PointOfLoops context(loops);
    int64_t address = address_.constant;
    for (const auto& [atom, elements] : address_.terms) address += Evaluate(atom, context).i * elements;
    return address * bytes_;
  }

 private:
  // Elements between rows. Where they are swizzled, accesses are taken to be without conflicts anyway.
  static int64_t StrideOf(const BufferNode& buffer, int dim) {
    return buffer.layout.swizzle.bits != 0 ? buffer.stride(dim) : buffer.layout.dims[dim].back().stride;
  }

  int64_t bytes_, start_;
  Linear address_;  // in elements
  std::vector<bool> moves_;
};

bool OfKind(const NestBlock& nest, size_t l, LoopKind kind) { return nest.loops[l].loop->loop_kind == kind; }

// The loops' values for thread number `thread` of a block.
Point PointOfThread(const NestBlock& nest, int64_t thread) {
  Point point;
  for (size_t l = nest.loops.size(); l-- > 0;) {
    if (!OfKind(nest, l, LoopKind::kThread)) continue;
    const auto extent = static_cast<int64_t>(nest.loops[l].extent);
    point.emplace_back(nest.loops[l].loop->var.get(), thread % extent);
    thread /= extent;
  }
  return point;
}

// Runs that the loops inside a block make of an access: loops that do not move it are hoisted where they are
// unrolled, or where nothing moves inside of them.
void CountExecutions(const NestBlock& nest, const Place& place, int lane, WarpAccess* access) {
  constexpr double kMostInFlight = 16;
  bool moved_inside = false;
  for (size_t l = nest.loops.size(); l-- > 0;) {
    const LoopKind kind = nest.loops[l].loop->loop_kind;
    if (static_cast<int>(l) == lane || kind == LoopKind::kGrid || kind == LoopKind::kThread) continue;
    const bool unrolled = kind != LoopKind::kSerial;
    if (place.moves(l) || (moved_inside && !unrolled)) access->executions *= nest.loops[l].extent;
    if (place.moves(l) && unrolled) access->unrolled *= nest.loops[l].extent;
    moved_inside |= place.moves(l);
  }
  access->unrolled = std::min(access->unrolled, kMostInFlight);
}

// The loop whose iterations are elements of one access: the vector loop, or, of what is read from shared
// memory, an unrolled one, whose neighbours the compiler joins. -1: none.
int LaneOf(const NestBlock& nest, const Place& place, const WarpAccess& access) {
  if (nest.lane >= 0 && place.moves(nest.lane)) return nest.lane;
  if (access.write || access.buffer->scope != Scope::kShared) return -1;
  for (size_t l = nest.loops.size(); l-- > 0;) {
    const VarNode* var = nest.loops[l].loop->var.get();
    const bool joined = OfKind(nest, l, LoopKind::kUnroll) &&
                        place.AddressAt({{var, 1}}) - place.start() == DTypeBytes(access.buffer->dtype);
    if (joined && place.moves(l)) return static_cast<int>(l);
  }
  return -1;
}

void MeasureWarp(const NestBlock& nest, const Place& place, int lane, WarpAccess* access) {
  const int64_t element = std::max(DTypeBytes(access->buffer->dtype), 1);
  const bool has_lanes = lane >= 0;
  const int64_t lanes = has_lanes ? static_cast<int64_t>(nest.loops[lane].extent) : 1;
  const auto threads = static_cast<int64_t>(std::min(ThreadsOf(nest), kWarpThreads));
  const int64_t wide = std::min<int64_t>(lanes * element, 16);
  bool together = true;
  std::vector<int64_t> starts;
  std::vector<int64_t> all;
  for (int64_t t = 0; t < threads; ++t) {
    Point point = PointOfThread(nest, t);
    if (has_lanes) point.emplace_back(nest.loops[lane].loop->var.get(), 0);
    for (int64_t v = 0; v < lanes; ++v) {
      if (has_lanes) point.back().second = v;
      const int64_t address = place.AddressAt(point);
      if (v == 0) starts.push_back(address);
      together &= address == starts.back() + v * element && starts.back() % wide == 0;
      const int64_t sector = FloorDivInt(address, static_cast<int64_t>(kSectorBytes));
      if (all.empty() || all.back() != sector) all.push_back(sector);
    }
  }
  access->bytes = static_cast<double>(lanes * element);
  access->instructions = together ? std::max(1.0, access->bytes / 16) : static_cast<double>(lanes);
  std::ranges::sort(all);
  access->sectors = static_cast<double>(std::unique(all.begin(), all.end()) - all.begin());
  if (access->buffer->scope != Scope::kShared) {
    access->wavefronts = std::max(access->instructions, access->sectors / 4);
    return;
  }
  const bool swizzled = access->buffer->layout.swizzle.bits != 0;
  const double ideal = std::max(1.0, access->bytes * static_cast<double>(threads) / 128);
  // One access of all lanes, or one of each.
  const auto turns = static_cast<double>(BankTurns(starts, together ? lanes * element : element));
  access->wavefronts = swizzled ? ideal : together ? turns : turns * static_cast<double>(lanes);
}

bool InRegisters(const BufferNode& buffer) {
  return buffer.scope == Scope::kLocal || buffer.scope == Scope::kAccumulator ||
         buffer.scope == Scope::kFragment;
}

}  // namespace

double UsefulShare(const NestBlock& nest) {
  double share = 1;
  for (const IterVar& iter : nest.block->iters) {
    const std::optional<Interval> range = RangeOf(iter.binding);
    if (!range || range->max < iter.var->extent) continue;
    share *= static_cast<double>(iter.var->extent) / static_cast<double>(range->max + 1);
  }
  return share;
}

double ClusterReduceBlocksOf(const NestBlock& nest) {
  double joined = 1;
  for (const NestLoop& loop : nest.loops)
    joined = std::max(joined, static_cast<double>(loop.loop->marks.cluster_reduce_blocks));
  return joined;
}

double ThreadsOf(const NestBlock& nest) {
  double threads = 1;
  for (size_t l = 0; l < nest.loops.size(); ++l)
    threads *= OfKind(nest, l, LoopKind::kThread) ? nest.loops[l].extent : 1;
  return std::max(1.0, threads / ClusterReduceBlocksOf(nest));
}

double BlocksOf(const NestBlock& nest) {
  double blocks = ClusterReduceBlocksOf(nest);
  for (size_t l = 0; l < nest.loops.size(); ++l)
    blocks *= OfKind(nest, l, LoopKind::kGrid) ? nest.loops[l].extent : 1;
  return blocks;
}

std::vector<WarpAccess> WarpAccessesOf(const NestBlock& nest) {
  constexpr size_t kMostPlaces = 24;  // a stencil's other points are like these
  const VarMap bindings = BindingsOf(*nest.block);
  std::vector<WarpAccess> accesses;
  std::vector<int64_t> starts;
  const auto add = [&](const Buffer& buffer, const std::vector<Expr>& indices, bool write) {
    if (InRegisters(*buffer) || accesses.size() >= kMostPlaces) return;
    const Place place(nest, buffer, indices, bindings);
    const int64_t start = place.start();
    for (size_t i = 0; i < accesses.size(); ++i) {
      if (accesses[i].buffer == buffer && accesses[i].write == write && starts[i] == start) return;
    }
    WarpAccess access{buffer, write};
    const int lane = LaneOf(nest, place, access);
    CountExecutions(nest, place, lane, &access);
    MeasureWarp(nest, place, lane, &access);
    accesses.push_back(access);
    starts.push_back(start);
  };
  add(nest.block->out, nest.block->indices, true);
  nest.block->ForEachValue([&](const Expr& value) {
    Visit(value, [&](const ExprNode& e) {
      if (e.op == Op::kLoad) add(e.buffer, e.args, false);
    });
  });
  return accesses;
}

double ElementsOfThread(const NestBlock& writer, size_t depth) {
  const Place place(writer, writer.block->out, writer.block->indices, BindingsOf(*writer.block));
  double threads = 1;
  for (size_t l = depth; l < writer.loops.size(); ++l) {
    if (OfKind(writer, l, LoopKind::kThread) && place.moves(l)) threads *= writer.loops[l].extent;
  }
  return static_cast<double>(writer.block->out->num_elements()) / threads;
}

}  // namespace mycc
