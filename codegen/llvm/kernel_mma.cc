#include <algorithm>
#include <bit>

#include "codegen/llvm/kernel_emitter.h"

namespace mycc {

using llvm::Value;

// acc(i, :) += a(i, k) * b(k, :): for each k the columns of b are loaded once, each a(i, k) is broadcast
// once, and every pair makes one fused multiply-add into a register of acc.

// The statement's n in vectors: whole ones, then a narrower one for the rest. Where b may be read past its
// end the rest takes one vector too wide, with masks one that is masked, otherwise a vector for each power of
// two.
std::vector<LlvmKernelEmitter::MmaColumn> LlvmKernelEmitter::ColumnsOf(const Mma& mma,
                                                                       const Access& b) const {
  std::vector<MmaColumn> columns;
  const int width = kernel_.vector_bytes / DTypeBytes(mma.acc.buffer->dtype);
  const bool one_rest =
      (b.place->over_read && places_.at(mma.acc.buffer.get()).on_stack) || kernel_.features.avx512vl;
  for (int64_t first = 0; first < mma.n;) {
    const int64_t rest = mma.n - first;
    int lanes = width;
    if (rest < width) {
      const auto bits = static_cast<uint64_t>(rest);
      lanes = static_cast<int>(one_rest ? std::bit_ceil(bits) : std::bit_floor(bits));
    }
    const int active = static_cast<int>(std::min<int64_t>(lanes, rest));
    columns.push_back({first, lanes, active});
    first += active;
  }
  return columns;
}

Value* LlvmKernelEmitter::LoadColumn(const Access& access, const MmaColumn& column, int64_t element) {
  const int size = DTypeBytes(access.dtype);
  Value* pointer = ByteOffset(access.pointer, (element + column.first) * size);
  llvm::Type* type = numbers_.MemoryType(access.dtype, column.lanes);
  if (column.active == column.lanes || access.place->over_read)
    return LoadRaw(*access.place, type, pointer, size);
  llvm::SmallVector<llvm::Constant*, 16> bits;
  for (int lane = 0; lane < column.lanes; ++lane) bits.push_back(b_.getInt1(lane < column.active));
  return Annotate(*access.place,
                  b_.CreateMaskedLoad(type, pointer, llvm::Align(size), llvm::ConstantVector::get(bits),
                                      llvm::Constant::getNullValue(type)));
}

void LlvmKernelEmitter::StoreColumn(const Access& access, const MmaColumn& column, int64_t element,
                                    Value* value, bool keeps_rest) {
  const int size = DTypeBytes(access.dtype);
  Value* pointer = ByteOffset(access.pointer, (element + column.first) * size);
  if (column.active < column.lanes && (keeps_rest || !access.place->on_stack)) {
    llvm::SmallVector<llvm::Constant*, 16> bits;
    for (int lane = 0; lane < column.lanes; ++lane) bits.push_back(b_.getInt1(lane < column.active));
    llvm::Constant* mask = llvm::ConstantVector::get(bits);
    if (!access.place->on_stack) {
      Annotate(*access.place, b_.CreateMaskedStore(value, pointer, llvm::Align(size), mask));
      return;
    }
    value = b_.CreateSelect(mask, value, LoadRaw(*access.place, value->getType(), pointer, size));
  }
  StoreRaw(*access.place, value, pointer, size);
}

void LlvmKernelEmitter::EmitMma(const Mma& mma) {
  const Access acc = AccessOf(mma.acc.buffer, mma.acc.indices, &mma.acc);
  const Access a = AccessOf(mma.a.buffer, mma.a.indices, &mma.a);
  const Access b = AccessOf(mma.b.buffer, mma.b.indices, &mma.b);
  const std::vector<MmaColumn> columns = ColumnsOf(mma, b);
  const DType dtype = acc.dtype;

  std::vector<std::vector<Value*>> sums(mma.m);
  for (int64_t i = 0; i < mma.m; ++i) {
    for (const MmaColumn& column : columns)
      sums[i].push_back(LoadColumn(acc, column, i * mma.acc.row_stride));
  }
  for (int64_t k = 0; k < mma.k; ++k) {
    std::vector<Value*> row;
    for (const MmaColumn& column : columns) row.push_back(LoadColumn(b, column, k * mma.b.row_stride));
    for (int64_t i = 0; i < mma.m; ++i) {
      const int size = DTypeBytes(a.dtype);
      Value* pointer = ByteOffset(a.pointer, (i * mma.a.row_stride + k * mma.a.col_stride) * size);
      Value* factor = LoadRaw(*a.place, numbers_.MemoryType(a.dtype), pointer, size);
      for (size_t j = 0; j < columns.size(); ++j) {
        llvm::Type* type = numbers_.RegisterType(dtype, columns[j].lanes);
        Value* wide = columns[j].lanes == 1 ? factor : b_.CreateVectorSplat(columns[j].lanes, factor);
        sums[i][j] = b_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {type}, {wide, row[j], sums[i][j]});
      }
    }
  }
  // Lanes beyond n may hold anything where nobody reads them: in a row of a tile, beyond the columns in use.
  const auto range = RangeOf(mma.acc.indices.back());
  const auto keeps_rest = [&](const MmaColumn& column) {
    return !range || range->min + mma.n < acc.place->read_columns ||
           range->max + column.first + column.lanes > mma.acc.buffer->shape.back();
  };
  for (int64_t i = 0; i < mma.m; ++i) {
    for (size_t j = 0; j < columns.size(); ++j) {
      StoreColumn(acc, columns[j], i * mma.acc.row_stride, sums[i][j], keeps_rest(columns[j]));
    }
  }
}

}  // namespace mycc
