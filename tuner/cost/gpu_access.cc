#include "tuner/cost/gpu_access.h"

#include <algorithm>
#include <array>

#include "codegen/expr/affine.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

// The values of some loop variables; all others are at their starts.
using Point = std::vector<std::pair<const VarNode*, int64_t>>;

int64_t Floor(int64_t a, int64_t b) { return b == 0 ? 0 : a >= 0 ? a / b : -((-a + b - 1) / b); }

// The value of an index at a point. Values that depend on data are scattered.
int64_t ValueAt(const Expr& expr, const Point& point) {
  const auto arg = [&](int i) { return ValueAt(expr->args[i], point); };
  switch (expr->op) {
    case Op::kConst: return expr->value.i;
    case Op::kVar:
      for (const auto& [var, value] : point) {
        if (var == expr->var.get()) return value;
      }
      return 0;
    case Op::kLoad: {
      uint64_t hash = 17;
      for (const Expr& index : expr->args) hash = hash * 31 + static_cast<uint64_t>(ValueAt(index, point));
      return static_cast<int64_t>(hash * 2654435761u % 1000003);
    }
    case Op::kAdd: return arg(0) + arg(1);
    case Op::kSub: return arg(0) - arg(1);
    case Op::kMul: return arg(0) * arg(1);
    case Op::kFloorDiv: return Floor(arg(0), arg(1));
    case Op::kMod: {
      const int64_t a = arg(0), b = arg(1);
      return a - Floor(a, b) * b;
    }
    case Op::kMin: return std::min(arg(0), arg(1));
    case Op::kMax: return std::max(arg(0), arg(1));
    case Op::kSelect: return arg(0) != 0 ? arg(1) : arg(2);
    case Op::kCast: return arg(0);
    default: return 0;
  }
}

// A place of a buffer over loop variables, and how its loops move it.
class Place {
 public:
  Place(const NestBlock& nest, const Buffer& buffer, const std::vector<Expr>& indices, const VarMap& bindings)
      : bytes_(DTypeBytes(buffer->dtype)), moves_(nest.loops.size()) {
    address_ = IntConst(0);
    for (size_t d = 0; d < indices.size(); ++d)
      address_ = address_ + Substitute(indices[d], bindings) * StrideOf(*buffer, static_cast<int>(d));
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
  int64_t AddressAt(const Point& loops) const { return ValueAt(address_, loops) * bytes_; }  // in bytes

 private:
  static int64_t StrideOf(const BufferNode& buffer, int dim) {
    const int64_t stride = buffer.stride(dim), pad = buffer.layout.row_pad;
    if (pad == 0 || dim + 1 == buffer.rank()) return stride;
    const int64_t row = buffer.shape.back();
    return stride / row * (row + pad);
  }

  int64_t bytes_, start_;
  Expr address_;
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

// Turns that a warp's access of `bytes` at each start takes: words of one bank wait for each other, and who
// reads the same word reads it at once.
double Wavefronts(const std::vector<int64_t>& starts, int64_t bytes) {
  constexpr int64_t kBanks = 32, kWord = 4, kWidest = 16;
  double turns = 0;
  for (int64_t first = 0; first < bytes; first += kWidest) {
    std::array<std::vector<int64_t>, kBanks> banks;
    size_t most = 1;
    for (const int64_t start : starts) {
      for (int64_t byte = first; byte < std::min(bytes, first + kWidest); byte += kWord) {
        const int64_t word = (start + byte) / kWord;
        std::vector<int64_t>& bank = banks[static_cast<size_t>(word % kBanks)];
        if (std::find(bank.begin(), bank.end(), word) == bank.end()) bank.push_back(word);
        most = std::max(most, bank.size());
      }
    }
    turns += static_cast<double>(most);
  }
  return turns;
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
      const int64_t sector = Floor(address, static_cast<int64_t>(kSectorBytes));
      if (all.empty() || all.back() != sector) all.push_back(sector);
    }
  }
  access->bytes = static_cast<double>(lanes * element);
  access->instructions = together ? std::max(1.0, access->bytes / 16) : static_cast<double>(lanes);
  std::sort(all.begin(), all.end());
  access->sectors = static_cast<double>(std::unique(all.begin(), all.end()) - all.begin());
  if (access->buffer->scope != Scope::kShared) {
    access->wavefronts = std::max(access->instructions, access->sectors / 4);
    return;
  }
  const bool swizzled = access->buffer->layout.swizzle_bytes != 0;
  const double ideal = std::max(1.0, access->bytes * static_cast<double>(threads) / 128);
  access->wavefronts = swizzled   ? ideal
                       : together ? Wavefronts(starts, lanes * element)
                                  : Wavefronts(starts, element) * static_cast<double>(lanes);
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
  Visit(nest.block->value, [&](const ExprNode& e) {
    if (e.op == Op::kLoad) add(e.buffer, e.args, false);
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
