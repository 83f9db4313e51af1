#include "tuner/cost/gpu_access.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include "codegen/expr/affine.h"

namespace mycc {
namespace {

using Point = std::unordered_map<const VarNode*, int64_t>;

int64_t Floor(int64_t a, int64_t b) { return b == 0 ? 0 : a >= 0 ? a / b : -((-a + b - 1) / b); }

// The value of an index where the loops stand at `point`, at their starts where it says nothing. What depends
// on data is scattered.
int64_t ValueAt(const Expr& expr, const Point& point) {
  const auto arg = [&](int i) { return ValueAt(expr->args[i], point); };
  switch (expr->op) {
    case Op::kConst: return expr->value.i;
    case Op::kVar: {
      const auto it = point.find(expr->var.get());
      return it == point.end() ? 0 : it->second;
    }
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
  Place(const NestBlock& nest, const Buffer& buffer, const std::vector<Expr>& indices)
      : nest_(nest), buffer_(buffer), indices_(indices), moves_(nest.loops.size()) {
    const int64_t start = AddressAt({});
    for (size_t l = 0; l < moves_.size(); ++l) {
      // Where a quotient stands still for a few iterations, the last one tells.
      for (const int64_t at : {int64_t{1}, static_cast<int64_t>(nest.loops[l].extent) - 1}) {
        if (nest.loops[l].extent > 1 && AddressAt({{nest.loops[l].loop->var.get(), at}}) != start)
          moves_[l] = true;
      }
    }
  }

  bool moves(size_t loop) const { return moves_[loop]; }
  int64_t start() const { return AddressAt({}); }

  // In bytes.
  int64_t AddressAt(const Point& loops) const {
    Point point = loops;
    for (const IterVar& iter : nest_.block->iters) point[iter.var.get()] = ValueAt(iter.binding, loops);
    int64_t address = 0;
    for (size_t d = 0; d < indices_.size(); ++d) {
      address += ValueAt(indices_[d], point) * Stride(static_cast<int>(d));
    }
    return address * DTypeBytes(buffer_->dtype);
  }

 private:
  int64_t Stride(int dim) const {
    const int64_t stride = buffer_->stride(dim), pad = buffer_->layout.row_pad;
    if (pad == 0 || dim + 1 == buffer_->rank()) return stride;
    const int64_t row = buffer_->shape.back();
    return stride / row * (row + pad);
  }

  const NestBlock& nest_;
  const Buffer& buffer_;
  const std::vector<Expr>& indices_;
  std::vector<bool> moves_;
};

bool OfKind(const NestBlock& nest, size_t l, LoopKind kind) { return nest.loops[l].loop->loop_kind == kind; }

// The loops' values for thread number `thread` of a block.
Point PointOfThread(const NestBlock& nest, int64_t thread) {
  Point point;
  for (size_t l = nest.loops.size(); l-- > 0;) {
    if (!OfKind(nest, l, LoopKind::kThread)) continue;
    const auto extent = static_cast<int64_t>(nest.loops[l].extent);
    point[nest.loops[l].loop->var.get()] = thread % extent;
    thread /= extent;
  }
  return point;
}

// Runs that the loops inside a block make of an access: loops that do not move it are hoisted where they are
// unrolled, or where nothing moves inside of them.
void CountExecutions(const NestBlock& nest, const Place& place, WarpAccess* access) {
  constexpr double kMostInFlight = 16;
  bool moved_inside = false;
  for (size_t l = nest.loops.size(); l-- > 0;) {
    const LoopKind kind = nest.loops[l].loop->loop_kind;
    if (static_cast<int>(l) == nest.lane || kind == LoopKind::kBlock || kind == LoopKind::kThread) continue;
    const bool unrolled = kind != LoopKind::kSerial;
    if (place.moves(l) || (moved_inside && !unrolled)) access->executions *= nest.loops[l].extent;
    if (place.moves(l) && unrolled) access->unrolled *= nest.loops[l].extent;
    moved_inside |= place.moves(l);
  }
  access->unrolled = std::min(access->unrolled, kMostInFlight);
}

// Words of one turn in different rows of one bank wait for each other.
double TurnsInBanks(const std::vector<int64_t>& words) {
  std::array<std::set<int64_t>, 32> banks;
  size_t most = 1;
  for (const int64_t word : words) {
    auto& bank = banks[static_cast<size_t>(word % 32)];
    bank.insert(word);
    most = std::max(most, bank.size());
  }
  return static_cast<double>(most);
}

// Turns for starts of `bytes` each: 32 threads of 4 bytes, 16 of 8, 8 of 16.
double Wavefronts(const std::vector<int64_t>& starts, int64_t bytes) {
  const int64_t width = std::clamp<int64_t>(bytes, 4, 16);
  const size_t group = static_cast<size_t>(128 / width);
  double turns = 0;
  for (size_t first = 0; first < starts.size(); first += group) {
    std::vector<int64_t> words;
    for (size_t t = first; t < std::min(starts.size(), first + group); ++t) {
      for (int64_t byte = 0; byte < width; byte += 4) words.push_back((starts[t] + byte) / 4);
    }
    turns += TurnsInBanks(words);
  }
  return turns * static_cast<double>((bytes + width - 1) / width);
}

void MeasureWarp(const NestBlock& nest, const Place& place, WarpAccess* access) {
  const int64_t element = std::max(DTypeBytes(access->buffer->dtype), 1);
  const bool has_lanes = nest.lane >= 0 && place.moves(nest.lane);
  const int64_t lanes = has_lanes ? static_cast<int64_t>(nest.loops[nest.lane].extent) : 1;
  const auto threads = static_cast<int64_t>(std::min(ThreadsOf(nest), kWarpThreads));
  const int64_t wide = std::min<int64_t>(lanes * element, 16);
  bool together = true;
  std::vector<int64_t> starts;
  std::set<int64_t> all;
  for (int64_t t = 0; t < threads; ++t) {
    Point point = PointOfThread(nest, t);
    for (int64_t v = 0; v < lanes; ++v) {
      if (has_lanes) point[nest.loops[nest.lane].loop->var.get()] = v;
      const int64_t address = place.AddressAt(point);
      if (v == 0) starts.push_back(address);
      together &= address == starts.back() + v * element && starts.back() % wide == 0;
      all.insert(Floor(address, static_cast<int64_t>(kSectorBytes)));
    }
  }
  access->bytes = static_cast<double>(lanes * element);
  access->instructions = together ? std::max(1.0, access->bytes / 16) : static_cast<double>(lanes);
  access->sectors = static_cast<double>(all.size());
  if (access->buffer->scope != Scope::kShared) return;
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

double ThreadsOf(const NestBlock& nest) {
  double threads = 1;
  for (size_t l = 0; l < nest.loops.size(); ++l)
    threads *= OfKind(nest, l, LoopKind::kThread) ? nest.loops[l].extent : 1;
  return threads;
}

double BlocksOf(const NestBlock& nest) {
  double blocks = 1;
  for (size_t l = 0; l < nest.loops.size(); ++l)
    blocks *= OfKind(nest, l, LoopKind::kBlock) ? nest.loops[l].extent : 1;
  return blocks;
}

std::vector<WarpAccess> WarpAccessesOf(const NestBlock& nest) {
  constexpr size_t kMostPlaces = 24;  // a stencil's other points are like these
  std::vector<WarpAccess> accesses;
  std::vector<int64_t> starts;
  const auto add = [&](const Buffer& buffer, const std::vector<Expr>& indices, bool write) {
    if (InRegisters(*buffer) || accesses.size() >= kMostPlaces) return;
    const Place place(nest, buffer, indices);
    const int64_t start = place.start();
    for (size_t i = 0; i < accesses.size(); ++i) {
      if (accesses[i].buffer == buffer && accesses[i].write == write && starts[i] == start) return;
    }
    WarpAccess access{buffer, write};
    CountExecutions(nest, place, &access);
    MeasureWarp(nest, place, &access);
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
  const Place place(writer, writer.block->out, writer.block->indices);
  double threads = 1;
  for (size_t l = depth; l < writer.loops.size(); ++l) {
    if (OfKind(writer, l, LoopKind::kThread) && place.moves(l)) threads *= writer.loops[l].extent;
  }
  return static_cast<double>(writer.block->out->num_elements()) / threads;
}

}  // namespace mycc
