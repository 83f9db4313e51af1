// Tiles that are read across: an unrolled loop around a vector loop whose loads are contiguous along the
// unrolled one.
//
//   unroll u in 16: vector v in 16:        load 16 vectors along u, one for each v
//     y[u, v] = f(x[v, u])             ->  turn the tile in registers
//                                          store 16 vectors along v
#include <bit>

#include "codegen/llvm/kernel_emitter.h"
#include "codegen/llvm/loop_facts.h"
#include "codegen/passes/copy_stmt.h"

namespace mycc {
namespace {

using llvm::Value;

constexpr int kChunkBytes = 16;  // what x86 shuffles within at the price of one instruction

// Two rows become two others: element `lane` of number `out` is element second of row first.
template <typename SourceFn>
void Exchange(Builder& b, Value** rows, size_t one, size_t other, const SourceFn& source) {
  const auto lanes =
      static_cast<int>(llvm::cast<llvm::FixedVectorType>(rows[one]->getType())->getNumElements());
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

// Row r, column c of a square tile to row c, column r. A step exchanges one bit of the row's number with one
// of the column's: first interleaving within 16 bytes, by runs of 1, 2, 4.. elements, then among groups of 16
// bytes, which are what instructions have. Numbers of rows come out in another order, which is free.
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
          // Runs of the lower, or of the upper half of each chunk, from the two rows in turn.
          const int run = 1 << bit, at = lane % chunk;
          return std::pair(at / run % 2, lane - at + out * chunk / 2 + at / (2 * run) * run + at % run);
        }
        // The even, or the odd chunks of one row and then of the other.
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

bool LlvmKernelEmitter::EmitTransposed(const For& loop) {
  const std::optional<CrossReads> cross = CrossReadsOf(loop);
  if (!cross) return false;
  const int64_t extent = *ConstExtent(loop);
  const auto row = [&](int64_t u, Value* first, int count, int active) {
    With(loop.var.get(), b_.getInt64(u),
         [&] { InLanes(*cross->lanes, first, count, active, [&] { Statement(cross->lanes->body); }); });
  };
  Chunks(*cross->lanes, WidthOf(*cross->lanes), /*unroll=*/true, [&](Value* first, int count, int active) {
    for (int64_t u0 = 0; u0 < extent; u0 += count) {
      const int64_t rows = std::min<int64_t>(count, extent - u0);
      std::vector<std::vector<Value*>> tiles;
      for (const ExprNode* load : cross->loads) {
        if (count > 1) tiles.push_back(LoadTurned(*load, *cross, u0, rows, first, count, active));
      }
      for (int64_t u = 0; u < rows; ++u) {
        for (size_t i = 0; i < tiles.size(); ++i) turned_[cross->loads[i]] = tiles[i][u];
        row(u0 + u, first, count, active);
      }
      turned_.clear();
    }
  });
  return true;
}

// What the load gives in `count` lanes, for each of `rows` iterations of the unrolled loop from u0 on.
std::vector<Value*> LlvmKernelEmitter::LoadTurned(const ExprNode& load, const CrossReads& cross, int64_t u0,
                                                  int64_t rows, Value* first, int count, int active) {
  memo_.assign(1, {});
  const int size = DTypeBytes(load.dtype);
  llvm::Type* type = numbers_.MemoryType(load.dtype, count);
  llvm::SmallVector<llvm::Constant*, 64> bits;
  for (int column = 0; column < count; ++column) bits.push_back(b_.getInt1(column < rows));
  Value* pointer = nullptr;
  const Place* place = nullptr;
  With(cross.unrolled, b_.getInt64(u0), [&] {
    With(cross.lanes->var.get(), first, [&] {
      const Access access = AccessOf(load.buffer, load.args, &load);
      pointer = access.pointer, place = access.place;
    });
  });
  const int64_t stride = flat_.at(&load).CoefficientOf(cross.lanes->var.get()) * size;
  std::vector<Value*> tile;
  for (int lane = 0; lane < count; ++lane) {
    Value* along = ByteOffset(pointer, lane * stride);
    if (lane >= active) {
      tile.push_back(llvm::PoisonValue::get(type));
    } else if (rows == count) {
      tile.push_back(LoadRaw(*place, type, along, size));
    } else {
      tile.push_back(Annotate(
          *place, b_.CreateMaskedLoad(type, along, llvm::Align(size), llvm::ConstantVector::get(bits),
                                      llvm::Constant::getNullValue(type))));
    }
  }
  tile = TurnTile(b_, std::move(tile), size);
  for (Value*& value : tile) value = numbers_.FromMemory(load.dtype, value);
  return tile;
}

}  // namespace mycc
