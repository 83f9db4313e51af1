// Emits transposes of register tiles: an unrolled loop around a vector loop, whose loads are contiguous along
// the unrolled loop.
//
//   unroll u in 16: vector v in 16:        load 16 vectors along u, one for each v
//     y[u, v] = f(x[v, u])             ->  turn the tile in registers
//                                          store 16 vectors along v
//
// The same for groups of adjacent elements, each moved as one element of the group's size:
//
//   unroll u in 16: unroll e in 2: vector v in 16:
//     y[u, v, e] = x[v, 2*u + e]
#include <bit>

#include "codegen/llvm/kernel_emitter.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

using llvm::Value;

constexpr int kChunkBytes = 16;  // x86 shuffles within 16 bytes by one instruction

// Makes two rows of two others: element `lane` of result `out` is element `second` of row `first`.
template <typename SourceFn>
void Exchange(Builder& b, Value** rows, size_t one, size_t other, const SourceFn& source) {
  const int lanes = LanesOf(rows[one]);
  Value* results[2];
  for (int out = 0; out < 2; ++out) {
    llvm::SmallVector<int, 64> mask;
    for (int lane = 0; lane < lanes; ++lane) {
      const auto [row, element] = source(out, lane);
      mask.push_back(row * lanes + element);
    }
    results[out] = b.CreateShuffleVector(rows[one], rows[other], mask);
  }
  rows[one] = results[0], rows[other] = results[1];
}

// Transposes a square tile. Each step exchanges one bit of the row's number with one of the column's: first
// by interleaving runs of 1, 2, 4, ... elements within 16 bytes, then by exchanging groups of 16 bytes, as
// the instructions do. The resulting order of rows is corrected without instructions.
std::vector<Value*> TurnTile(Builder& b, std::vector<Value*> rows, int element_bytes) {
  const int lanes = static_cast<int>(rows.size());
  const int chunk = std::min(lanes, kChunkBytes / element_bytes);
  const int in_chunk = std::countr_zero(static_cast<unsigned>(chunk));
  const int bits = std::countr_zero(static_cast<unsigned>(lanes));
  for (int bit = 0; bit < bits; ++bit) {
    for (int r = 0; r < lanes; ++r) {
      if (r >> bit & 1) continue;
      Exchange(b, rows.data(), r, r | 1 << bit, [&](int out, int lane) {
        if (bit < in_chunk) {
          // Takes runs of the lower or upper half of each chunk from the two rows in turn.
          const int run = 1 << bit, at = lane % chunk;
          return std::pair(at / run % 2, lane - at + out * chunk / 2 + at / (2 * run) * run + at % run);
        }
        // Takes the even or odd chunks of one row, then of the other.
        const int at = lane % (lanes / 2);
        return std::pair(lane / (lanes / 2), (at / chunk * 2 + out) * chunk + at % chunk);
      });
    }
  }
  std::vector<Value*> turned(lanes);
  for (int r = 0; r < lanes; ++r) {
    int column = 0;
    for (int bit = 0; bit < bits; ++bit) {
      column |= (r >> bit & 1) << (bit < in_chunk ? in_chunk - 1 - bit : bit);
    }
    turned[column] = rows[r];
  }
  return turned;
}

}  // namespace

void LlvmKernelEmitter::EmitTransposed(const For& loop) {
  const For& lanes = As<For>(loop.body);
  const std::vector<Expr>& loads = As<Store>(lanes.body).turned;
  const int64_t extent = *ConstExtent(loop);
  Chunks(lanes, [&](Value* first, int count, int active) {
    for (int64_t u0 = 0; u0 < extent; u0 += count) {
      const int64_t rows = std::min<int64_t>(count, extent - u0);
      std::vector<std::vector<Value*>> tiles;
      for (const Expr& load : loads) {
        if (count > 1) tiles.push_back(LoadTurned(load, loop, u0, rows, first, count, active));
      }
      for (int64_t u = 0; u < rows; ++u) {
        turned_.clear();
        for (size_t i = 0; i < tiles.size(); ++i) turned_.emplace_back(loads[i], tiles[i][u]);
        With(loop.var.get(), b_.getInt64(u0 + u),
             [&] { InLanes(lanes, first, count, active, [&] { Statement(lanes.body); }); });
      }
      turned_.clear();
    }
  });
}

// The load's values in `count` lanes, for each of `rows` iterations of the unrolled loop from u0 on.
std::vector<Value*> LlvmKernelEmitter::LoadTurned(const Expr& load, const For& loop, int64_t u0, int64_t rows,
                                                  Value* first, int count, int active) {
  const Var& lane = As<For>(loop.body).var;
  const Access rows_of_tile =
      AccessAt({{loop.var, b_.getInt64(u0)}, {lane, first}}, load->buffer, load->args, load.get());
  const int64_t stride = flat_.at(load.get()).CoefficientOf(lane.get()) * DTypeBytes(load->dtype);
  std::vector<Value*> tile =
      LoadTile(rows_of_tile, stride, numbers_.MemoryType(load->dtype), count, active, rows);
  for (Value*& value : tile) value = numbers_.FromMemory(load->dtype, value);
  return tile;
}

LlvmKernelEmitter::Access LlvmKernelEmitter::AccessAt(const std::vector<std::pair<Var, Value*>>& values,
                                                      const Buffer& buffer, const std::vector<Expr>& indices,
                                                      const void* key) {
  memo_.assign(1, {});
  for (const auto& [var, value] : values) vars_[var.get()] = Variable{value, depth_};
  const Access access = AccessOf(buffer, indices, key);
  for (const auto& [var, value] : values) vars_.erase(var.get());
  return access;
}

// Loads the first `columns` units of `active` rows that are `stride_bytes` apart, and returns them as columns
// of `count` units.
std::vector<Value*> LlvmKernelEmitter::LoadTile(const Access& rows, int64_t stride_bytes, llvm::Type* unit,
                                                int count, int active, int64_t columns) {
  auto* type = llvm::FixedVectorType::get(unit, count);
  const int align = DTypeBytes(rows.dtype);
  std::vector<Value*> tile;
  for (int lane = 0; lane < count; ++lane) {
    Value* along = ByteOffset(rows.pointer, lane * stride_bytes);
    Value* row = llvm::PoisonValue::get(type);
    if (lane < active) row = LoadFirst(*rows.place, type, along, align, static_cast<int>(columns));
    tile.push_back(row);
  }
  return TurnTile(b_, std::move(tile), static_cast<int>(unit->getPrimitiveSizeInBits()) / 8);
}

void LlvmKernelEmitter::EmitTurnedGroups(const For& loop) {
  const For& groups = As<For>(loop.body);
  const For& lanes = As<For>(groups.body);
  const Store& store = As<Store>(lanes.body);
  const ExprNode& load = *store.value;
  const int unit_bytes = DTypeBytes(load.dtype) * static_cast<int>(*ConstExtent(groups));
  llvm::Type* unit = b_.getIntNTy(8 * unit_bytes);
  const int64_t extent = *ConstExtent(loop);
  const auto access = [&](const Buffer& buffer, const std::vector<Expr>& indices, const void* key, int64_t u,
                          Value* first) {
    return AccessAt({{loop.var, b_.getInt64(u)}, {groups.var, b_.getInt64(0)}, {lanes.var, first}}, buffer,
                    indices, key);
  };
  Chunks(lanes, [&](Value* first, int count, int active) {
    for (int64_t u0 = 0; u0 < extent; u0 += count) {
      const int64_t columns = std::min<int64_t>(count, extent - u0);
      const Access rows = access(load.buffer, load.args, &load, u0, first);
      const int64_t stride = flat_.at(&load).CoefficientOf(lanes.var.get()) * DTypeBytes(load.dtype);
      const std::vector<Value*> tile = LoadTile(rows, stride, unit, count, active, columns);
      for (int64_t u = 0; u < columns; ++u) {
        const Access turned = access(store.buffer, store.indices, &store, u0 + u, first);
        StoreFirst(*turned.place, tile[u], turned.pointer, DTypeBytes(turned.dtype), active);
      }
    }
  });
}

}  // namespace mycc
