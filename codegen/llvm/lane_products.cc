#include "codegen/llvm/lane_products.h"

#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace mycc {

using llvm::Value;
namespace intrinsic = llvm::Intrinsic;

llvm::Type* LaneProducts::StoredType(DType dtype, int lanes) const {
  if (kind_ == LaneProduct::kMultiplyAdd) return numbers_.MemoryType(dtype, lanes);
  return WithLanes(b_.getIntNTy(8 * group_ * DTypeBytes(dtype)), lanes);
}

Value* LaneProducts::Operand(DType dtype, Value* stored) const {
  const auto as = [&](llvm::Type* element, int each) {
    return b_.CreateBitCast(stored, WithLanes(element, each * LanesOf(stored)));
  };
  switch (kind_) {
    case LaneProduct::kMultiplyAdd:
      return numbers_.Cast(accumulator_, dtype, numbers_.FromMemory(dtype, stored));
    case LaneProduct::kPairsInt8:
      return b_.CreateIntCast(as(b_.getInt8Ty(), 2), WithLanes(b_.getInt16Ty(), 2 * LanesOf(stored)),
                              /*isSigned=*/dtype != DType::kU8);
    case LaneProduct::kDotBf16: return as(b_.getBFloatTy(), 2);
    case LaneProduct::kDotInt8: break;
  }
  return stored;
}

Value* LaneProducts::Broadcast(Value* stored, int lanes) const {
  if (kind_ != LaneProduct::kMultiplyAdd) return Operand(a_type_, b_.CreateVectorSplat(lanes, stored));
  Value* factor = Operand(a_type_, stored);
  return lanes == 1 ? factor : b_.CreateVectorSplat(lanes, factor);
}

Value* LaneProducts::Row(Value* stored, int valid) const {
  if (kind_ != LaneProduct::kMultiplyAdd && valid < group_) {
    const uint64_t kept = (uint64_t{1} << (valid * 8 * DTypeBytes(b_type_))) - 1;
    stored = b_.CreateAnd(stored, llvm::ConstantInt::get(stored->getType(), kept));
  }
  return Operand(b_type_, stored);
}

Value* LaneProducts::MultiplyAdd(Value* broadcast, Value* row, Value* sum) const {
  if (kind_ == LaneProduct::kMultiplyAdd)
    return b_.CreateIntrinsic(intrinsic::fmuladd, {sum->getType()}, {broadcast, row, sum});
  const int lanes = LanesOf(sum);
  if (kind_ == LaneProduct::kDotBf16) {
    return b_.CreateIntrinsic(
        ForLanes(lanes, {intrinsic::x86_avx512bf16_dpbf16ps_128, intrinsic::x86_avx512bf16_dpbf16ps_256,
                         intrinsic::x86_avx512bf16_dpbf16ps_512}),
        {}, {sum, broadcast, row});
  }
  if (kind_ == LaneProduct::kPairsInt8) return b_.CreateAdd(sum, SumsOfTwo(broadcast, row));
  if (a_type_ == b_type_) return QuadsOfOneSign(sum, broadcast, row);
  return b_type_ == DType::kI8 ? Int8Dot(sum, broadcast, row) : Int8Dot(sum, row, broadcast);
}

// vpmaddwd multiplies pairs of 16-bit integers and adds the two products; widened bytes cannot overflow.
// Without AVX2 it has 16 bytes only.
Value* LaneProducts::SumsOfTwo(Value* a, Value* b) const {
  const int lanes = LanesOf(a) / 2;
  if (lanes == 8 && !numbers_.features().avx2) {
    Value* low = SumsOfTwo(HalfOf(b_, a, 0), HalfOf(b_, b, 0));
    Value* high = SumsOfTwo(HalfOf(b_, a, 1), HalfOf(b_, b, 1));
    return llvm::concatenateVectors(b_, {low, high});
  }
  return b_.CreateIntrinsic(ForLanes(lanes, {intrinsic::x86_sse2_pmadd_wd, intrinsic::x86_avx2_pmadd_wd,
                                             intrinsic::x86_avx512_pmaddw_d_512}),
                            {}, {a, b});
}

// Products of two i8 or two u8, for which there is no instruction: even and odd elements are widened in
// place, and multiplied separately.
Value* LaneProducts::QuadsOfOneSign(Value* sum, Value* a, Value* b) const {
  llvm::Type* pairs = llvm::FixedVectorType::get(b_.getInt16Ty(), 2 * LanesOf(sum));
  const auto widened = [&](Value* quads, bool odd) {
    Value* high = b_.CreateBitCast(quads, pairs);
    if (!odd) high = b_.CreateShl(high, 8);
    return a_type_ == DType::kU8 ? b_.CreateLShr(high, 8) : b_.CreateAShr(high, 8);
  };
  for (const bool odd : {false, true}) sum = b_.CreateAdd(sum, SumsOfTwo(widened(a, odd), widened(b, odd)));
  return sum;
}

// vpdpbusd adds four products without saturation.
Value* LaneProducts::Int8Dot(Value* sum, Value* unsigned_bytes, Value* signed_bytes) const {
  return b_.CreateIntrinsic(
      ForLanes(LanesOf(sum), {intrinsic::x86_avx512_vpdpbusd_128, intrinsic::x86_avx512_vpdpbusd_256,
                              intrinsic::x86_avx512_vpdpbusd_512}),
      {}, {sum, unsigned_bytes, signed_bytes});
}

}  // namespace mycc
