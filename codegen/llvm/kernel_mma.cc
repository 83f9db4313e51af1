// Emits Mma statements by vector instructions. Each operand element is loaded or broadcast once for the whole
// register tile.
#include <algorithm>
#include <utility>

#include "codegen/llvm/kernel_emitter.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace mycc {

// Emits the products of one CPU instruction (target/instructions.h) in each lane: a group of elements of a,
// broadcast to all lanes, times the lane's own group of b, added to the lane's sum. Every variant is exact
// for integers, and rounds floats at most once for each product and sum.
class LaneProducts {
 public:
  // A product by a row of class kVector, or of kTile: the remainder of a tile's depth is computed in lanes.
  LaneProducts(Builder& builder, const Mma& mma)
      : b_(builder),
        row_(*mma.row()),
        a_type_(mma.a.buffer->dtype),
        b_type_(mma.b.buffer->dtype),
        accumulator_(mma.acc.buffer->dtype) {}

  int group() const { return row_.group; }
  // The fewest lanes that the instruction exists for.
  int least_lanes() const { return row_.lanes == LaneProduct::kMultiplyAdd ? 1 : 4; }

  // The memory type of a group of a, or of `lanes` groups of b: an integer of its bits (kMultiplyAdd: the
  // element's memory type).
  llvm::Type* StoredType(DType dtype, int lanes = 1) const {
    if (row_.lanes == LaneProduct::kMultiplyAdd) return b_.MemoryType(dtype, lanes);
    return WithLanes(b_.getIntNTy(8 * group() * DTypeBytes(dtype)), lanes);
  }

  // Broadcasts a stored group of a to all lanes.
  Value* Broadcast(Value* stored, int lanes) const {
    if (row_.lanes != LaneProduct::kMultiplyAdd) return Operand(a_type_, b_.Splat(stored, lanes));
    return b_.Splat(Operand(a_type_, stored), lanes);
  }

  // Groups of b, one for each lane, from a vector of stored ones. Elements from `valid` on in each group
  // become zero, so that their products are zero.
  Value* Row(Value* stored, int valid) const {
    if (row_.lanes != LaneProduct::kMultiplyAdd && valid < group()) {
      const uint64_t kept = (uint64_t{1} << (valid * 8 * DTypeBytes(b_type_))) - 1;
      stored = b_.CreateAnd(stored, Int(stored, kept));
    }
    return Operand(b_type_, stored);
  }

  Value* MultiplyAdd(Value* broadcast, Value* row, Value* sum) const {
    switch (row_.lanes) {
      case LaneProduct::kMultiplyAdd: return b_.MulAdd(broadcast, row, sum);
      case LaneProduct::kDotBf16:
        return b_.OfLanes("avx512bf16.dpbf16ps", LanesOf(sum), {sum, broadcast, row});
      case LaneProduct::kPairsInt8: return b_.CreateAdd(sum, SumsOfTwo(broadcast, row));
      case LaneProduct::kDotInt8: break;
    }
    if (a_type_ == b_type_) return QuadsOfOneSign(sum, broadcast, row);
    // vpdpbusd adds four products of unsigned by signed bytes, without saturation.
    if (b_type_ != DType::kI8) std::swap(broadcast, row);
    return b_.OfLanes("avx512.vpdpbusd", LanesOf(sum), {sum, broadcast, row});
  }

 private:
  // Groups as the instruction takes them: an element in the accumulator's type, two bytes of each lane as
  // integers of 16 bits, two bf16, or their bits.
  Value* Operand(DType dtype, Value* stored) const {
    const int halves = 2 * LanesOf(stored);
    switch (row_.lanes) {
      case LaneProduct::kMultiplyAdd: return b_.Cast(accumulator_, dtype, b_.FromMemory(dtype, stored));
      case LaneProduct::kPairsInt8:
        return b_.CreateIntCast(b_.CreateBitCast(stored, WithLanes(b_.getInt8Ty(), halves)),
                                WithLanes(b_.getInt16Ty(), halves), /*isSigned=*/dtype != DType::kU8);
      case LaneProduct::kDotBf16: return b_.CreateBitCast(stored, WithLanes(b_.getBFloatTy(), halves));
      case LaneProduct::kDotInt8: break;
    }
    return stored;
  }

  // vpmaddwd multiplies pairs of 16-bit integers and adds the two products; widened bytes cannot overflow.
  // Without AVX2 it has 16 bytes only.
  Value* SumsOfTwo(Value* a, Value* b) const {
    const int lanes = LanesOf(a) / 2;
    if (lanes == 8 && !b_.features.avx2) {
      Value* low = SumsOfTwo(b_.HalfOf(a, 0), b_.HalfOf(b, 0));
      Value* high = SumsOfTwo(b_.HalfOf(a, 1), b_.HalfOf(b, 1));
      return llvm::concatenateVectors(b_, {low, high});
    }
    const intrinsic::ID id = lanes == 4   ? intrinsic::x86_sse2_pmadd_wd
                             : lanes == 8 ? intrinsic::x86_avx2_pmadd_wd
                                          : intrinsic::x86_avx512_pmaddw_d_512;
    return b_.CreateIntrinsic(id, {}, {a, b});
  }

  // Products of two i8 or two u8, for which there is no instruction: even and odd elements are widened in
  // place, and multiplied separately.
  Value* QuadsOfOneSign(Value* sum, Value* a, Value* b) const {
    llvm::Type* pairs = llvm::FixedVectorType::get(b_.getInt16Ty(), 2 * LanesOf(sum));
    const auto widened = [&](Value* quads, bool odd) {
      Value* high = b_.CreateBitCast(quads, pairs);
      if (!odd) high = b_.CreateShl(high, 8);
      return a_type_ == DType::kU8 ? b_.CreateLShr(high, 8) : b_.CreateAShr(high, 8);
    };
    for (const bool odd : {false, true}) sum = b_.CreateAdd(sum, SumsOfTwo(widened(a, odd), widened(b, odd)));
    return sum;
  }

  Builder& b_;
  const Instruction& row_;
  const DType a_type_, b_type_, accumulator_;
};

namespace {

// Whether rows of a read the same elements at different steps (rows of a window).
bool IsWindow(const Mma& mma) {
  constexpr int64_t kFarApart = 32;  // rows farther apart do not belong to one window
  const int64_t row_stride = std::abs(mma.a.row_stride);
  return mma.group == 1 && row_stride < kFarApart &&
         row_stride * (mma.m - 1) >= std::max<int64_t>(std::abs(mma.a.col_stride), 1);
}

// Whether `elements` from the view's first one on lie in its buffer, wherever loops have brought it.
bool EndsInside(const TileView& view, int64_t elements) {
  const auto first = RangeOf(OffsetOf(view.buffer->layout, view.indices));
  return first && first->max + elements <= view.buffer->num_elements();
}

// The same pointer, hidden from LLVM's analysis. Rows of a window read the same elements at different steps.
// LLVM would keep these in registers that the accumulators need, while loading them again costs nothing.
Value* Opaque(Builder& b, Value* pointer) {
  llvm::FunctionType* type = llvm::FunctionType::get(b.getPtrTy(), {b.getPtrTy()}, /*isVarArg=*/false);
  return b.CreateCall(llvm::InlineAsm::get(type, "", "=r,0", /*hasSideEffects=*/false), {pointer});
}

}  // namespace

// Loads a column as a vector of `type`, each element being `group` elements of the buffer.
Value* LlvmKernelEmitter::LoadColumn(const Access& access, llvm::Type* type, const Part& column,
                                     int64_t element, int64_t group) {
  Value* pointer = ElementAt(access, element + column.first * group);
  if (access.place->over_read) return LoadRaw(access, type, pointer);
  return LoadFirst(access, type, pointer, column.active);
}

// Loads a column's groups of the depth. The last one may be partial: its other elements are zero or, in the
// tensor, arbitrary (LaneProducts::Row). They are not read where they may lie beyond the tensor.
Value* LlvmKernelEmitter::LoadGroups(const LaneProducts& products, const Access& access, const TileView& view,
                                     const Part& column, int64_t element, int valid) {
  llvm::Type* type = products.StoredType(access.dtype, column.lanes);
  const int group = products.group();
  const int64_t end = element + (column.first + column.active) * group;
  if (valid == group || access.place->over_read || EndsInside(view, end))
    return LoadColumn(access, type, column, element, group);
  auto* elements = llvm::FixedVectorType::get(b_.getIntNTy(8 * access.align()), column.lanes * group);
  return b_.CreateBitCast(LoadMasked(access, elements, ElementAt(access, element + column.first * group),
                                     FirstLanes(column.active, column.lanes, group, valid)),
                          type);
}

// Loads the first `valid` elements of a group of a. The others are zero or, for integers, arbitrary: b is
// zero there (LaneProducts::Row).
Value* LlvmKernelEmitter::LoadGroup(const LaneProducts& products, const Access& a, int64_t element,
                                    int valid) {
  Value* pointer = ElementAt(a, element);
  llvm::Type* type = products.StoredType(a.dtype);
  const bool whole = valid == products.group() || (a.place->over_read && !IsFloat(a.dtype));
  if (whole) return LoadRaw(a, type, pointer);
  const int64_t size = a.align();
  Value* group = llvm::ConstantInt::get(type, 0);
  for (int64_t i = 0; i < valid; ++i) {
    Value* one = LoadRaw(a, b_.MemoryType(a.dtype), ByteOffset(pointer, i * size));
    Value* bits = b_.CreateZExt(b_.CreateBitCast(one, b_.getIntNTy(8 * size)), type);
    group = b_.CreateOr(group, b_.CreateShl(bits, 8 * size * i));
  }
  return group;
}

// Prefetches rows of an operand `ahead` elements further on; 0: no prefetch.
void LlvmKernelEmitter::FetchAhead(const Access& access, const TileView& view, int64_t rows, int64_t ahead) {
  if (ahead == 0) return;
  for (int64_t row = 0; row < rows; ++row) Fetch(ElementAt(access, view.Row(row) + ahead));
}

// acc(i, :) += a(i, k) * b(k, :): for each group of k the columns of b are loaded once, each group of a(i, k)
// is broadcast once, and every pair makes one multiply-add into a register of acc.
void LlvmKernelEmitter::EmitMma(const Mma& mma) {
  if (tiles_ != nullptr) return EmitTileProducts(mma);
  const Access acc = AccessOf(mma.acc);
  Access a = AccessOf(mma.a);
  const Access b = AccessOf(mma.b);
  const LaneProducts products(b_, mma);
  // The rest of n is one vector that is too wide if b may be read past its end, or one masked vector if the
  // machine has masks.
  const bool one_rest = (b.place->over_read && acc.place->on_stack) || b_.features.avx512vl;
  const std::vector<Part> columns =
      PartsOf(0, mma.n, kernel_.vector_bytes / acc.align(), one_rest, products.least_lanes());
  const bool is_window = IsWindow(mma);

  // A tile register has more rows than fit the vector registers, so the rows are computed in parts.
  const auto width = static_cast<int64_t>(columns.size());
  const int64_t most = std::max<int64_t>((kernel_.registers - width - 1) / width, 1);
  const int64_t rows = mma.row()->in_tiles() ? std::min(most, mma.m) : mma.m;
  FetchAhead(a, mma.a, mma.m, mma.a_ahead);
  for (int64_t first = 0; first < mma.m; first += rows) {
    const int64_t end = std::min(first + rows, mma.m);
    Sums sums = LoadSums(mma, acc, columns, first, end);
    for (int64_t k = 0; k < mma.k; k += mma.group) {
      if (is_window) a.pointer = Opaque(b_, a.pointer);
      const int valid = static_cast<int>(std::min(mma.group, mma.k - k));
      std::vector<Value*> row;
      for (const Part& column : columns) {
        const int64_t element = k / mma.group * mma.b.row_stride;
        row.push_back(products.Row(LoadGroups(products, b, mma.b, column, element, valid), valid));
        if (mma.b_ahead != 0 && first == 0)
          Fetch(ElementAt(b, element + column.first * mma.group + mma.b_ahead));
      }
      for (int64_t i = first; i < end; ++i) {
        Value* group = LoadGroup(products, a, mma.a.Row(i) + k / mma.group * mma.a.col_stride, valid);
        for (size_t j = 0; j < columns.size(); ++j) {
          Value*& sum = sums[i - first][j];
          sum = products.MultiplyAdd(products.Broadcast(group, columns[j].lanes), row[j], sum);
        }
      }
    }
    StoreSums(mma, acc, columns, first, sums);
  }
}

// Loads the sums of rows [first, end), a vector for each column.
LlvmKernelEmitter::Sums LlvmKernelEmitter::LoadSums(const Mma& mma, const Access& acc,
                                                    const std::vector<Part>& columns, int64_t first,
                                                    int64_t end) {
  Sums sums(end - first);
  for (int64_t i = first; i < end; ++i) {
    for (const Part& column : columns) {
      llvm::Type* type = b_.RegisterType(acc.dtype, column.lanes);
      sums[i - first].push_back(LoadColumn(acc, type, column, i * mma.acc.row_stride));
    }
  }
  return sums;
}

// Stores the sums of rows from `first` on.
void LlvmKernelEmitter::StoreSums(const Mma& mma, const Access& acc, const std::vector<Part>& columns,
                                  int64_t first, const Sums& sums) {
  // Lanes beyond n may be arbitrary if they are never read: in a row of a tile, after the used columns.
  const auto range = RangeOf(mma.acc.indices.back());
  const auto keeps_rest = [&](const Part& column) {
    return !range || range->min + mma.n < acc.place->read_columns ||
           range->max + column.first + column.lanes > mma.acc.buffer->shape.back();
  };
  for (const std::vector<Value*>& row : sums) {
    for (const auto& [sum, column] : llvm::zip(row, columns)) {
      Value* pointer = ElementAt(acc, first * mma.acc.row_stride + column.first);
      if (!acc.place->on_stack) {
        StoreFirst(acc, sum, pointer, column.active);
        continue;
      }
      Value* stored = sum;
      if (column.active < column.lanes && keeps_rest(column)) {
        Value* old = LoadRaw(acc, sum->getType(), pointer);
        stored = b_.CreateSelect(FirstLanes(column.active, column.lanes), sum, old);
      }
      StoreRaw(acc, stored, pointer);
    }
    ++first;
  }
}

}  // namespace mycc
