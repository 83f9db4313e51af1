// Emits Mma statements by vector instructions. Each operand element is loaded or broadcast once for the whole
// register tile.
#include <algorithm>

#include "codegen/llvm/kernel_emitter.h"
#include "llvm/IR/InlineAsm.h"

namespace mycc {

using llvm::Value;

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

// acc(i, :) += a(i, k) * b(k, :): for each group of k the columns of b are loaded once, each group of a(i, k)
// is broadcast once, and every pair makes one multiply-add into a register of acc.

// Divides the statement's n into vectors: whole ones, then the rest. The rest is one vector that is too wide
// if b may be read past its end, or one masked vector if the machine has masks, or one vector for each power
// of two.
std::vector<LlvmKernelEmitter::MmaColumn> LlvmKernelEmitter::ColumnsOf(const Mma& mma, int least_lanes) {
  std::vector<MmaColumn> columns;
  const int width = kernel_.vector_bytes / DTypeBytes(mma.acc.buffer->dtype);
  const bool one_rest = (PlaceOf(mma.b.buffer).over_read && places_.at(mma.acc.buffer.get()).on_stack) ||
                        kernel_.features.avx512vl;
  for (int64_t first = 0; first < mma.n;) {
    const int64_t rest = mma.n - first;
    const int lanes = rest < width ? std::max(LanesOfRest(rest, one_rest), least_lanes) : width;
    const int active = static_cast<int>(std::min<int64_t>(lanes, rest));
    columns.push_back({first, lanes, active});
    first += active;
  }
  return columns;
}

// Loads a column as a vector of `type`, each element being `group` elements of the buffer.
Value* LlvmKernelEmitter::LoadColumn(const Access& access, llvm::Type* type, const MmaColumn& column,
                                     int64_t element, int64_t group) {
  Value* pointer = ElementAt(access, element + column.first * group);
  if (access.place->over_read) return LoadRaw(access, type, pointer);
  return LoadFirst(access, type, pointer, column.active);
}

// Loads a column's groups of the depth. The last one may be partial: its other elements are zero or, in the
// tensor, arbitrary (LaneProducts::Row). They are not read where they may lie beyond the tensor.
Value* LlvmKernelEmitter::LoadGroups(const LaneProducts& products, const Access& access, const TileView& view,
                                     const MmaColumn& column, int64_t element, int valid) {
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

void LlvmKernelEmitter::StoreColumn(const Access& access, const MmaColumn& column, int64_t element,
                                    Value* value, bool keeps_rest) {
  Value* pointer = ElementAt(access, element + column.first);
  if (!access.place->on_stack) return StoreFirst(access, value, pointer, column.active);
  if (column.active < column.lanes && keeps_rest) {
    value = b_.CreateSelect(FirstLanes(column.active, column.lanes), value,
                            LoadRaw(access, value->getType(), pointer));
  }
  StoreRaw(access, value, pointer);
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
    Value* one = LoadRaw(a, numbers_.MemoryType(a.dtype), ByteOffset(pointer, i * size));
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

void LlvmKernelEmitter::EmitMma(const Mma& mma) {
  if (tiles_ != nullptr) return EmitTileProducts(mma);
  const Access acc = AccessOf(mma.acc);
  Access a = AccessOf(mma.a);
  const Access b = AccessOf(mma.b);
  const LaneProducts products(b_, numbers_, *mma.row(), a.dtype, b.dtype, acc.dtype);
  const std::vector<MmaColumn> columns = ColumnsOf(mma, products.least_lanes());
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
      for (const MmaColumn& column : columns) {
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
                                                    const std::vector<MmaColumn>& columns, int64_t first,
                                                    int64_t end) {
  Sums sums(end - first);
  for (int64_t i = first; i < end; ++i) {
    for (const MmaColumn& column : columns) {
      llvm::Type* type = numbers_.RegisterType(acc.dtype, column.lanes);
      sums[i - first].push_back(LoadColumn(acc, type, column, i * mma.acc.row_stride));
    }
  }
  return sums;
}

void LlvmKernelEmitter::StoreSums(const Mma& mma, const Access& acc, const std::vector<MmaColumn>& columns,
                                  int64_t first, const Sums& sums) {
  // Lanes beyond n may be arbitrary if they are never read: in a row of a tile, after the used columns.
  const auto range = RangeOf(mma.acc.indices.back());
  const auto keeps_rest = [&](const MmaColumn& column) {
    return !range || range->min + mma.n < acc.place->read_columns ||
           range->max + column.first + column.lanes > mma.acc.buffer->shape.back();
  };
  for (size_t i = 0; i < sums.size(); ++i) {
    for (size_t j = 0; j < columns.size(); ++j) {
      const int64_t row = first + static_cast<int64_t>(i);
      StoreColumn(acc, columns[j], row * mma.acc.row_stride, sums[i][j], keeps_rest(columns[j]));
    }
  }
}

}  // namespace mycc
