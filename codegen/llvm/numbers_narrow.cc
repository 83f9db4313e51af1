// Emits conversions between f32 and floats of 16 or 8 bits by integer arithmetic on their bits, so that all
// lanes convert at once on every CPU.
#include "codegen/llvm/numbers.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace mycc {
namespace {

// The format of a narrow type, relative to a float's bits.
struct Float8Format {
  int dropped;             // bits of a float's mantissa that are dropped
  uint32_t rebias;         // added to a float's exponent
  uint32_t least_normal;   // the smallest normal number
  uint32_t subnormal_one;  // 2^k, whose last place is that of the type's subnormal numbers
  uint32_t largest;        // in the type's own bits
};

Float8Format FormatOf(DType dtype) {
  return dtype == DType::kF8E4M3 ? Float8Format{20, 120u << 23, 0x3c800000, 0x46800000, 0x7e}
                                 : Float8Format{21, 112u << 23, 0x38800000, 0x43000000, 0x7b};
}

}  // namespace

llvm::Value* Numbers::Round(DType dtype, llvm::Value* f) const {
  if (dtype == DType::kBF16) return RoundBF16(f);
  if (IsFloat8(dtype)) return FromFloat8Bits(dtype, Float8Bits(dtype, f));
  return dtype == DType::kF16 ? FromHalfBits(HalfBits(f)) : f;
}

llvm::Value* Numbers::RoundBF16(llvm::Value* f) const {
  llvm::Value* bits = AsInt(f);
  // Adding just under half of the last kept bit (half when that bit is odd) carries exactly when nearest-even
  // rounds up.
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(bits, 16), Int(bits, 1));
  llvm::Value* rounded = b_.CreateAdd(b_.CreateAdd(bits, Int(bits, 0x7fff)), odd);
  llvm::Value* quiet = b_.CreateOr(bits, Int(bits, 0x400000));
  llvm::Value* kept = b_.CreateSelect(b_.CreateFCmpUNO(f, f), quiet, rounded);
  return AsFloat(b_.CreateAnd(kept, Int(bits, 0xffff0000u)));
}

bool Numbers::CanRoundToBF16(int lanes) const {
  return features_.avx512bf16 && (lanes == 16 || (lanes == 8 && features_.avx512vl));
}

llvm::Value* Numbers::RoundedToBF16(llvm::Value* floats) const {
  const auto lanes = llvm::cast<llvm::FixedVectorType>(floats->getType())->getNumElements();
  const auto id = lanes == 16 ? llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_512
                              : llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_256;
  return b_.CreateBitCast(b_.CreateIntrinsic(id, {}, {floats}), Like(floats, b_.getInt16Ty()));
}

llvm::Value* Numbers::HalfBits(llvm::Value* f) const {
  llvm::Type* half_bits = Like(f, b_.getInt16Ty());
  if (features_.f16c) return b_.CreateBitCast(b_.CreateFPTrunc(f, Like(f, b_.getHalfTy())), half_bits);
  llvm::Value* bits = AsInt(f);
  llvm::Value* sign = b_.CreateAnd(bits, Int(bits, 0x80000000u));
  llvm::Value* magnitude = b_.CreateXor(bits, sign);
  // Normal numbers: round at bit 13, and change the exponent's bias. A carry beyond the largest number gives
  // infinity.
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, 13), Int(bits, 1));
  llvm::Value* rounded = b_.CreateAdd(b_.CreateAdd(magnitude, Int(bits, 0xfff)), odd);
  llvm::Value* normal = b_.CreateLShr(b_.CreateSub(rounded, Int(bits, 0x38000000)), 13);
  // Subnormal results: their last place is that of 0.5f, so that adding 0.5f rounds.
  llvm::Value* shifted = AsInt(b_.CreateFAdd(AsFloat(magnitude), AsFloat(Int(bits, 0x3f000000))));
  llvm::Value* small = b_.CreateSub(shifted, Int(bits, 0x3f000000));
  llvm::Value* payload = b_.CreateAnd(b_.CreateLShr(magnitude, 13), Int(bits, 0x1ff));
  llvm::Value* nan = b_.CreateOr(payload, Int(bits, 0x7e00));
  llvm::Value* result = b_.CreateSelect(b_.CreateICmpULT(magnitude, Int(bits, 0x38800000)), small, normal);
  result = b_.CreateSelect(b_.CreateICmpUGE(magnitude, Int(bits, 0x47800000)), Int(bits, 0x7c00), result);
  result = b_.CreateSelect(b_.CreateICmpUGT(magnitude, Int(bits, 0x7f800000)), nan, result);
  return b_.CreateTrunc(b_.CreateOr(result, b_.CreateLShr(sign, 16)), half_bits);
}

llvm::Value* Numbers::FromHalfBits(llvm::Value* h) const {
  if (features_.f16c)
    return b_.CreateFPExt(b_.CreateBitCast(h, Like(h, b_.getHalfTy())), Like(h, b_.getFloatTy()));
  llvm::Value* wide = b_.CreateZExt(h, Like(h, b_.getInt32Ty()));
  llvm::Value* sign = b_.CreateShl(b_.CreateAnd(wide, Int(wide, 0x8000)), 16);
  llvm::Value* magnitude = b_.CreateAnd(wide, Int(wide, 0x7fff));
  llvm::Value* normal = b_.CreateAdd(b_.CreateShl(magnitude, 13), Int(wide, 0x38000000));
  llvm::Value* special = b_.CreateAdd(normal, Int(wide, 0x38000000));
  llvm::Value* exact = b_.CreateSIToFP(magnitude, Like(h, b_.getFloatTy()));
  llvm::Value* small = AsInt(b_.CreateFMul(exact, llvm::ConstantFP::get(exact->getType(), 0x1p-24)));
  llvm::Value* result = b_.CreateSelect(b_.CreateICmpULT(magnitude, Int(wide, 0x400)), small, normal);
  result = b_.CreateSelect(b_.CreateICmpUGE(magnitude, Int(wide, 0x7c00)), special, result);
  return AsFloat(b_.CreateOr(result, sign));
}

// Rounds to nearest, ties to even. Larger numbers become the largest one; infinity stays if the type has one.
llvm::Value* Numbers::Float8Bits(DType dtype, llvm::Value* f) const {
  const Float8Format format = FormatOf(dtype);
  llvm::Value* bits = AsInt(f);
  llvm::Value* sign = b_.CreateAnd(bits, Int(bits, 0x80000000u));
  llvm::Value* magnitude = b_.CreateXor(bits, sign);
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, format.dropped), Int(bits, 1));
  llvm::Value* below_half = Int(bits, (1u << (format.dropped - 1)) - 1);
  llvm::Value* rounded = b_.CreateAdd(b_.CreateAdd(magnitude, below_half), odd);
  llvm::Value* normal = b_.CreateLShr(b_.CreateSub(rounded, Int(bits, format.rebias)), format.dropped);
  normal = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, normal, Int(bits, format.largest));
  // Subnormal results: the addition rounds.
  llvm::Value* one = Int(bits, format.subnormal_one);
  llvm::Value* small = b_.CreateSub(AsInt(b_.CreateFAdd(AsFloat(magnitude), AsFloat(one))), one);
  llvm::Value* result =
      b_.CreateSelect(b_.CreateICmpULT(magnitude, Int(bits, format.least_normal)), small, normal);
  llvm::Value* infinity = Int(bits, 0x7f800000);
  if (dtype == DType::kF8E5M2)
    result = b_.CreateSelect(b_.CreateICmpEQ(magnitude, infinity), Int(bits, format.largest + 1), result);
  result = b_.CreateSelect(b_.CreateICmpUGT(magnitude, infinity), Int(bits, 0x7f), result);
  return b_.CreateTrunc(b_.CreateOr(result, b_.CreateLShr(sign, 24)), Like(f, b_.getInt8Ty()));
}

llvm::Value* Numbers::FromFloat8Bits(DType dtype, llvm::Value* b) const {
  // f8e5m2 is f16's upper byte.
  if (dtype == DType::kF8E5M2)
    return FromHalfBits(b_.CreateShl(b_.CreateZExt(b, Like(b, b_.getInt16Ty())), 8));
  llvm::Value* wide = b_.CreateZExt(b, Like(b, b_.getInt32Ty()));
  llvm::Value* sign = b_.CreateShl(b_.CreateAnd(wide, Int(wide, 0x80)), 24);
  llvm::Value* magnitude = b_.CreateAnd(wide, Int(wide, 0x7f));
  llvm::Value* normal = b_.CreateAdd(b_.CreateShl(magnitude, 20), Int(wide, 120u << 23));
  llvm::Value* exact = b_.CreateSIToFP(magnitude, Like(b, b_.getFloatTy()));
  llvm::Value* small = AsInt(b_.CreateFMul(exact, llvm::ConstantFP::get(exact->getType(), 0x1p-9)));
  llvm::Value* result = b_.CreateSelect(b_.CreateICmpULT(magnitude, Int(wide, 8)), small, normal);
  result = b_.CreateSelect(b_.CreateICmpEQ(magnitude, Int(wide, 0x7f)), Int(wide, 0x7fc00000), result);
  return AsFloat(b_.CreateOr(result, sign));
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
