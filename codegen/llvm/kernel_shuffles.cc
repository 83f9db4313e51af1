// Emits nests that move elements between lanes: an unrolled loop around a vector loop.
//
// Transposes of register tiles, where loads are contiguous along the unrolled loop:
//
//   unroll u in 16: vector v in 16:        load 16 vectors along u, one for each v
//     y[u, v] = f(x[v, u])             ->  turn the tile in registers
//                                          store 16 vectors along v
//
// The same for groups of adjacent elements, each moved as one element of the group's size:
//
//   unroll u in 16: unroll e in 2: vector v in 16:
//     y[u, v, e] = x[v, 2*u + e]
//
// Interleaved stores, which are contiguous along the unrolled loop:
//
//   unroll e in 2: vector v in 16:         load a vector along v for each e
//     y[v, e] = f(x[e, v])            ->   interleave them in registers
//                                          store 32 elements
#include <algorithm>
#include <bit>

#include "codegen/llvm/kernel_emitter.h"
#include "codegen/passes/stmt_facts.h"
#include "llvm/Analysis/VectorUtils.h"

namespace mycc {
namespace {

constexpr int kChunkBytes = 16;  // x86 shuffles within 16 bytes by one instruction

// Transposes a square tile. Each step exchanges one bit of the row's number with one of the column's: first
// by interleaving runs of 1, 2, 4, ... elements within 16 bytes, then by exchanging groups of 16 bytes, as
// the instructions do. The resulting order of rows is corrected without instructions.
std::vector<Value*> TurnTile(Builder& b, std::vector<Value*> rows, int element_bytes) {
  const int lanes = static_cast<int>(rows.size());
  const int chunk = std::min(lanes, kChunkBytes / element_bytes);
  const int in_chunk = std::countr_zero(static_cast<unsigned>(chunk));
  const int bits = std::countr_zero(static_cast<unsigned>(lanes));
  // The index in a shuffle of (lower, upper) of what becomes element `lane` of the new lower row (`out` is 0)
  // or of the upper one (`out` is 1).
  const auto source = [&](int bit, int out, int lane) {
    if (bit < in_chunk) {
      // Takes runs of the lower or upper half of each chunk from the two rows in turn.
      const int run = 1 << bit, at = lane % chunk;
      return at / run % 2 * lanes + lane - at + out * chunk / 2 + at / (2 * run) * run + at % run;
    }
    // Takes the even or odd chunks of one row, then of the other.
    const int at = lane % (lanes / 2);
    return lane / (lanes / 2) * lanes + (at / chunk * 2 + out) * chunk + at % chunk;
  };
  for (int bit = 0; bit < bits; ++bit) {
    for (int r = 0; r < lanes; ++r) {
      if (r >> bit & 1) continue;
      Value *lower = rows[r], *upper = rows[r | 1 << bit];
      for (const int out : {0, 1}) {
        llvm::SmallVector<int, 64> mask;
        for (int lane = 0; lane < lanes; ++lane) mask.push_back(source(bit, out, lane));
        rows[r | out << bit] = b.CreateShuffleVector(lower, upper, mask);
      }
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

// a0 b0 a1 b1 ..
Value* Zip(Builder& b, Value* even, Value* odd) {
  return b.CreateShuffleVector(even, odd, llvm::createInterleaveMask(LanesOf(even), 2));
}

// Interleaves two or four vectors. Four are interleaved in two halves, which match the unpack instructions.
Value* Interleave(Builder& b, const std::vector<Value*>& vectors) {
  if (vectors.size() == 2) return Zip(b, vectors[0], vectors[1]);
  return Zip(b, Zip(b, vectors[0], vectors[2]), Zip(b, vectors[1], vectors[3]));
}

}  // namespace

void LlvmKernelEmitter::EmitTransposed(const For& loop) {
  const For& lanes = As<For>(loop.body);
  const std::vector<Expr>& loads = As<Store>(lanes.body).turned;
  const int64_t extent = *ConstExtent(loop);
  Chunks(lanes, [&](const Chunk& chunk) {
    for (int64_t u0 = 0; u0 < extent; u0 += chunk.count) {
      const int64_t rows = std::min<int64_t>(chunk.count, extent - u0);
      std::vector<std::vector<Value*>> tiles;
      for (const Expr& load : loads) {
        if (chunk.count == 1) continue;
        tiles.push_back(LoadTile(*load, {{loop.var, b_.getInt64(u0)}, {lanes.var, chunk.first}}, chunk,
                                 b_.MemoryType(load->dtype), rows));
        for (Value*& value : tiles.back()) value = b_.FromMemory(load->dtype, value);
      }
      for (int64_t u = 0; u < rows; ++u) {
        turned_.clear();
        for (size_t i = 0; i < tiles.size(); ++i) turned_.emplace_back(loads[i], tiles[i][u]);
        With(loop.var.get(), b_.getInt64(u0 + u),
             [&] { InLanes(lanes, chunk, [&] { Statement(lanes.body); }); });
      }
      turned_.clear();
    }
  });
}

template <typename Node>
LlvmKernelEmitter::Access LlvmKernelEmitter::AccessAt(const VarValues& values, const Node& node) {
  memo_.assign(1, {});
  for (const auto& [var, value] : values) vars_[var.get()] = Variable{value, depth_};
  const Access access = AccessOf(node);
  for (const auto& [var, value] : values) vars_.erase(var.get());
  return access;
}

// Loads the first `columns` units of each lane's row, at these values of the loops' variables, the lanes' one
// last. Returns them as columns: a vector of all lanes for each.
std::vector<Value*> LlvmKernelEmitter::LoadTile(const ExprNode& load, const VarValues& values,
                                                const Chunk& chunk, llvm::Type* unit, int64_t columns) {
  auto* type = llvm::FixedVectorType::get(unit, chunk.count);
  const Access rows = AccessAt(values, load);
  const int64_t stride = flat_.at(&load).CoefficientOf(values.back().first.get());
  std::vector<Value*> tile(chunk.count, llvm::PoisonValue::get(type));
  for (int row = 0; row < chunk.active; ++row)
    tile[row] = LoadFirst(rows, type, ElementAt(rows, row * stride), static_cast<int>(columns));
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
  const auto values = [&](int64_t u, const Chunk& chunk) {
    return VarValues{{loop.var, b_.getInt64(u)}, {groups.var, b_.getInt64(0)}, {lanes.var, chunk.first}};
  };
  Chunks(lanes, [&](const Chunk& chunk) {
    for (int64_t u0 = 0; u0 < extent; u0 += chunk.count) {
      const int64_t columns = std::min<int64_t>(chunk.count, extent - u0);
      const std::vector<Value*> tile = LoadTile(load, values(u0, chunk), chunk, unit, columns);
      for (int64_t u = 0; u < columns; ++u) {
        const Access turned = AccessAt(values(u0 + u, chunk), store);
        StoreFirst(turned, tile[u], turned.pointer, chunk.active);
      }
    }
  });
}

void LlvmKernelEmitter::EmitInterleaved(const For& loop) {
  const For& lanes = As<For>(loop.body);
  const Store& store = As<Store>(lanes.body);
  const auto group = static_cast<int>(*ConstExtent(loop));
  Chunks(lanes, [&](const Chunk& chunk) {
    std::vector<Value*> vectors;
    Access access;
    for (int e = 0; e < group; ++e) {
      With(loop.var.get(), b_.getInt64(e), [&] {
        InLanes(lanes, chunk, [&] {
          Value* value = b_.ToMemory(store.buffer->dtype, Emit(store.value));
          if (!IsVector(value)) value = b_.CreateVectorSplat(chunk.count, value);
          vectors.push_back(value);
          if (e == 0) access = AccessOf(store);
        });
      });
    }
    StoreFirst(access, Interleave(b_, vectors), access.pointer, chunk.active * group);
  });
}

}  // namespace mycc
