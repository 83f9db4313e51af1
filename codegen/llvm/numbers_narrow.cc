// Emits conversions between f32 and floats of 16 or 8 bits by integer arithmetic on their bits, so that all
// lanes convert at once on every CPU.
#include "codegen/llvm/numbers.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"

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

llvm::Value* Numbers::Round(DType dtype, llvm::Value* f) const {
  if (dtype == DType::kBF16) return RoundBF16(f);
  return IsNarrowFloat(dtype) ? FromNarrowBits(dtype, NarrowBits(dtype, f)) : f;
}

// Adding just under half of the last kept bit (half when that bit is odd) carries exactly when nearest-even
// rounds up.
llvm::Value* Numbers::RoundedAt(llvm::Value* bits, int dropped) const {
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(bits, dropped), Int(bits, 1));
  return b_.CreateAdd(b_.CreateAdd(bits, Int(bits, (1u << (dropped - 1)) - 1)), odd);
}

llvm::Value* Numbers::RoundBF16(llvm::Value* f) const {
  llvm::Value* bits = AsInt(f);
  llvm::Value* rounded = RoundedAt(bits, 16);
  llvm::Value* quiet = b_.CreateOr(bits, Int(bits, 0x400000));
  llvm::Value* kept = b_.CreateSelect(b_.CreateFCmpUNO(f, f), quiet, rounded);
  return AsFloat(b_.CreateAnd(kept, Int(bits, 0xffff0000u)));
}

bool Numbers::CanRoundToBF16(int lanes) const {
  return features_.avx512bf16 && (lanes == 16 || (lanes == 8 && features_.avx512vl));
}

llvm::Value* Numbers::RoundedToBF16(llvm::Value* floats) const {
  const auto id = LanesOf(floats) == 16 ? llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_512
                                        : llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_256;
  return b_.CreateBitCast(b_.CreateIntrinsic(id, {}, {floats}), Like(floats, b_.getInt16Ty()));
}

// Rounds to nearest, ties to even. Numbers beyond the largest become infinity in f16, and the largest one in
// types of 8 bits; infinity stays if the type has one.
llvm::Value* Numbers::NarrowBits(DType dtype, llvm::Value* f) const {
  const bool is_half = dtype == DType::kF16;
  const int width = 8 * DTypeBytes(dtype);
  llvm::Type* type = Like(f, b_.getIntNTy(width));
  if (is_half && features_.f16c) return b_.CreateBitCast(b_.CreateFPTrunc(f, Like(f, b_.getHalfTy())), type);
  const NarrowFormat format = FormatOf(dtype);
  llvm::Value* bits = AsInt(f);
  llvm::Value* sign = b_.CreateAnd(bits, Int(bits, 0x80000000u));
  llvm::Value* magnitude = b_.CreateXor(bits, sign);
  // Normal numbers: round at the last kept bit, and change the exponent's bias.
  llvm::Value* rounded = RoundedAt(magnitude, format.dropped);
  llvm::Value* normal = b_.CreateLShr(b_.CreateSub(rounded, Int(bits, format.rebias)), format.dropped);
  if (!is_half) normal = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, normal, Int(bits, format.largest));
  // Subnormal results: the addition rounds.
  llvm::Value* one = Int(bits, format.subnormal_one);
  llvm::Value* small = b_.CreateSub(AsInt(b_.CreateFAdd(AsFloat(magnitude), AsFloat(one))), one);
  llvm::Value* nan = Int(bits, 0x7f);
  if (is_half) {
    llvm::Value* payload = b_.CreateAnd(b_.CreateLShr(magnitude, format.dropped), Int(bits, 0x1ff));
    nan = b_.CreateOr(payload, Int(bits, 0x7e00));
  }
  llvm::Value* result =
      b_.CreateSelect(b_.CreateICmpULT(magnitude, Int(bits, format.least_normal)), small, normal);
  llvm::Value* infinity = Int(bits, 0x7f800000);
  // In f16 from 2^16 on; below, a carry beyond the largest number gives infinity.
  llvm::Value* is_infinite = is_half                   ? b_.CreateICmpUGE(magnitude, Int(bits, 0x47800000))
                             : dtype == DType::kF8E5M2 ? b_.CreateICmpEQ(magnitude, infinity)
                                                       : nullptr;
  if (is_infinite) result = b_.CreateSelect(is_infinite, Int(bits, format.largest + 1), result);
  result = b_.CreateSelect(b_.CreateICmpUGT(magnitude, infinity), nan, result);
  return b_.CreateTrunc(b_.CreateOr(result, b_.CreateLShr(sign, 32 - width)), type);
}

llvm::Value* Numbers::FromNarrowBits(DType dtype, llvm::Value* narrow) const {
  // f8e5m2 is f16's upper byte.
  if (dtype == DType::kF8E5M2) {
    llvm::Value* half = b_.CreateShl(b_.CreateZExt(narrow, Like(narrow, b_.getInt16Ty())), 8);
    return FromNarrowBits(DType::kF16, half);
  }
  llvm::Type* type = Like(narrow, b_.getFloatTy());
  const bool is_half = dtype == DType::kF16;
  if (is_half && features_.f16c)
    return b_.CreateFPExt(b_.CreateBitCast(narrow, Like(narrow, b_.getHalfTy())), type);
  const NarrowFormat format = FormatOf(dtype);
  const int width = 8 * DTypeBytes(dtype);
  llvm::Value* wide = b_.CreateZExt(narrow, Like(narrow, b_.getInt32Ty()));
  const uint32_t sign_bit = 1u << (width - 1);
  llvm::Value* sign = b_.CreateShl(b_.CreateAnd(wide, Int(wide, sign_bit)), 32 - width);
  llvm::Value* magnitude = b_.CreateAnd(wide, Int(wide, sign_bit - 1));
  llvm::Value* normal = b_.CreateAdd(b_.CreateShl(magnitude, format.dropped), Int(wide, format.rebias));
  llvm::Value* special = is_half ? b_.CreateAdd(normal, Int(wide, format.rebias)) : Int(wide, 0x7fc00000);
  llvm::Value* exact = b_.CreateSIToFP(magnitude, type);
  llvm::Constant* last_place = llvm::ConstantFP::get(type, is_half ? 0x1p-24 : 0x1p-9);
  llvm::Value* small = AsInt(b_.CreateFMul(exact, last_place));
  llvm::Value* is_small = b_.CreateICmpULT(magnitude, Int(wide, 1u << (23 - format.dropped)));
  llvm::Value* result = b_.CreateSelect(is_small, small, normal);
  llvm::Value* past_largest = Int(wide, format.largest + 1);
  llvm::Value* is_special =
      is_half ? b_.CreateICmpUGE(magnitude, past_largest) : b_.CreateICmpEQ(magnitude, past_largest);
  return AsFloat(b_.CreateOr(b_.CreateSelect(is_special, special, result), sign));
}

// Converts double to a narrower float with one rounding: first to float with the last bit sticky (round to
// odd), so that the second rounding gives the correct result.
llvm::Value* Numbers::NarrowDouble(DType to, llvm::Value* d) const {
  llvm::Value* f = b_.CreateFPTrunc(d, Like(d, b_.getFloatTy()));
  llvm::Value* back = b_.CreateFPExt(f, d->getType());
  llvm::Value* bits = AsInt(f);
  llvm::Value* even = b_.CreateICmpEQ(b_.CreateAnd(bits, Int(bits, 1)), Int(bits, 0));
  llvm::Value* inexact = b_.CreateFCmpONE(back, d);
  llvm::Value* shrunk = b_.CreateFCmpOLT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                         b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, d));
  llvm::Value* odd =
      b_.CreateSelect(shrunk, b_.CreateAdd(bits, Int(bits, 1)), b_.CreateSub(bits, Int(bits, 1)));
  return Round(to, AsFloat(b_.CreateSelect(b_.CreateAnd(even, inexact), odd, bits)));
}

}  // namespace mycc
