// Emits conversions between f32 and floats of 16 or 8 bits by integer arithmetic on their bits, so that all
// lanes convert at once on every CPU.
#include "codegen/llvm/builder.h"

namespace mycc {
namespace {

// The format of a narrow type other than bf16, relative to a float's bits.
struct NarrowFormat {
  int dropped;             // bits of a float's mantissa that are dropped
  uint32_t rebias;         // added to a float's exponent
  uint32_t least_normal;   // the smallest normal number
  uint32_t subnormal_one;  // 2^k, whose last place is that of the type's subnormal numbers
  uint32_t largest;        // in the type's own bits
};

NarrowFormat FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF16: return {13, 112u << 23, 0x38800000, 0x3f000000, 0x7bff};
    case DType::kF8E4M3: return {20, 120u << 23, 0x3c800000, 0x46800000, 0x7e};
    default: return {21, 112u << 23, 0x38800000, 0x43000000, 0x7b};
  }
}

}  // namespace

// Adding just under half of the last kept bit (half when that bit is odd) carries exactly when nearest-even
// rounds up.
Value* Builder::RoundedAt(Value* bits, int dropped) {
  Value* odd = CreateAnd(CreateLShr(bits, dropped), Int(bits, 1));
  return CreateAdd(CreateAdd(bits, Int(bits, (1u << (dropped - 1)) - 1)), odd);
}

Value* Builder::Round(DType dtype, Value* f) {
  if (!IsNarrowFloat(dtype)) return f;
  if (dtype != DType::kBF16) return FromNarrowBits(dtype, NarrowBits(dtype, f));
  Value* bits = AsInt(f);
  Value* rounded = RoundedAt(bits, 16);
  Value* quiet = CreateOr(bits, Int(bits, 0x400000));
  Value* kept = CreateSelect(CreateFCmpUNO(f, f), quiet, rounded);
  return AsFloat(CreateAnd(kept, Int(bits, 0xffff0000u)));
}

bool Builder::CanRoundToBF16(int lanes) const {
  return features.avx512bf16 && (lanes == 16 || (lanes == 8 && features.avx512vl));
}

Value* Builder::RoundedToBF16(Value* floats) {
  Value* rounded = OfLanes("avx512bf16.cvtneps2bf16", LanesOf(floats), {floats});
  return CreateBitCast(rounded, Like(floats, getInt16Ty()));
}

// Rounds to nearest, ties to even. Numbers beyond the largest become infinity in f16, and the largest one in
// types of 8 bits; infinity stays if the type has one.
Value* Builder::NarrowBits(DType dtype, Value* f) {
  const bool is_half = dtype == DType::kF16;
  const int width = 8 * DTypeBytes(dtype);
  llvm::Type* type = Like(f, getIntNTy(width));
  if (is_half && features.f16c) return CreateBitCast(CreateFPTrunc(f, Like(f, getHalfTy())), type);
  const NarrowFormat format = FormatOf(dtype);
  Value* bits = AsInt(f);
  Value* sign = CreateAnd(bits, Int(bits, 0x80000000u));
  Value* magnitude = CreateXor(bits, sign);
  // Normal numbers: round at the last kept bit, and change the exponent's bias.
  Value* rounded = RoundedAt(magnitude, format.dropped);
  Value* normal = CreateLShr(CreateSub(rounded, Int(bits, format.rebias)), format.dropped);
  if (!is_half) normal = CreateBinaryIntrinsic(intrinsic::umin, normal, Int(bits, format.largest));
  // Subnormal results: the addition rounds.
  Value* one = Int(bits, format.subnormal_one);
  Value* small = CreateSub(AsInt(CreateFAdd(AsFloat(magnitude), AsFloat(one))), one);
  Value* nan = Int(bits, 0x7f);
  if (is_half) {
    Value* payload = CreateAnd(CreateLShr(magnitude, format.dropped), Int(bits, 0x1ff));
    nan = CreateOr(payload, Int(bits, 0x7e00));
  }
  Value* result = CreateSelect(CreateICmpULT(magnitude, Int(bits, format.least_normal)), small, normal);
  Value* infinity = Int(bits, 0x7f800000);
  // In f16 from 2^16 on; below, a carry beyond the largest number gives infinity.
  Value* is_infinite = is_half                   ? CreateICmpUGE(magnitude, Int(bits, 0x47800000))
                       : dtype == DType::kF8E5M2 ? CreateICmpEQ(magnitude, infinity)
                                                 : nullptr;
  if (is_infinite) result = CreateSelect(is_infinite, Int(bits, format.largest + 1), result);
  result = CreateSelect(CreateICmpUGT(magnitude, infinity), nan, result);
  return CreateTrunc(CreateOr(result, CreateLShr(sign, 32 - width)), type);
}

Value* Builder::FromNarrowBits(DType dtype, Value* narrow) {
  // f8e5m2 is f16's upper byte.
  if (dtype == DType::kF8E5M2) {
    Value* half = CreateShl(CreateZExt(narrow, Like(narrow, getInt16Ty())), 8);
    return FromNarrowBits(DType::kF16, half);
  }
  llvm::Type* type = Like(narrow, getFloatTy());
  const bool is_half = dtype == DType::kF16;
  if (is_half && features.f16c) return CreateFPExt(CreateBitCast(narrow, Like(narrow, getHalfTy())), type);
  const NarrowFormat format = FormatOf(dtype);
  const int width = 8 * DTypeBytes(dtype);
  Value* wide = CreateZExt(narrow, Like(narrow, getInt32Ty()));
  const uint32_t sign_bit = 1u << (width - 1);
  Value* sign = CreateShl(CreateAnd(wide, Int(wide, sign_bit)), 32 - width);
  Value* magnitude = CreateAnd(wide, Int(wide, sign_bit - 1));
  Value* normal = CreateAdd(CreateShl(magnitude, format.dropped), Int(wide, format.rebias));
  Value* special = is_half ? CreateAdd(normal, Int(wide, format.rebias)) : Int(wide, 0x7fc00000);
  Value* exact = CreateSIToFP(magnitude, type);
  llvm::Constant* last_place = llvm::ConstantFP::get(type, is_half ? 0x1p-24 : 0x1p-9);
  Value* small = AsInt(CreateFMul(exact, last_place));
  Value* is_small = CreateICmpULT(magnitude, Int(wide, 1u << (23 - format.dropped)));
  Value* result = CreateSelect(is_small, small, normal);
  Value* past_largest = Int(wide, format.largest + 1);
  Value* is_special =
      is_half ? CreateICmpUGE(magnitude, past_largest) : CreateICmpEQ(magnitude, past_largest);
  return AsFloat(CreateOr(CreateSelect(is_special, special, result), sign));
}

// Converts double to a narrower float with one rounding: first to float with the last bit sticky (round to
// odd), so that the second rounding gives the correct result.
Value* Builder::NarrowDouble(DType to, Value* d) {
  Value* f = CreateFPTrunc(d, Like(d, getFloatTy()));
  Value* back = CreateFPExt(f, d->getType());
  Value* bits = AsInt(f);
  Value* even = CreateICmpEQ(CreateAnd(bits, Int(bits, 1)), Int(bits, 0));
  Value* inexact = CreateFCmpONE(back, d);
  Value* shrunk = CreateFCmpOLT(Abs(back), Abs(d));
  Value* odd = CreateSelect(shrunk, CreateAdd(bits, Int(bits, 1)), CreateSub(bits, Int(bits, 1)));
  return Round(to, AsFloat(CreateSelect(CreateAnd(even, inexact), odd, bits)));
}

}  // namespace mycc
