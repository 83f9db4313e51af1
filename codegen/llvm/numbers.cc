// Emits each operation as a short sequence of LLVM instructions with the result of expr/eval.h.
#include "codegen/llvm/numbers.h"

#include <algorithm>

#include "base/check.h"
#include "codegen/llvm/kernel_flow.h"
#include "codegen/llvm/vector_math.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/MDBuilder.h"

namespace mycc {
namespace {

// For operations that a type does not have.
llvm::Value* NoValue(Op op, DType dtype) {
  MYCC_CHECK(false) << "no " << OpName(op) << " of " << DTypeName(dtype);
  return nullptr;
}

}  // namespace

int LanesOf(const llvm::Type* type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

llvm::Type* WithLanes(llvm::Type* element, int lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, lanes);
}

llvm::Value* HalfOf(Builder& b, llvm::Value* vector, int half) {
  const int lanes = LanesOf(vector) / 2;
  return b.CreateShuffleVector(vector, llvm::createSequentialMask(half * lanes, lanes, /*NumUndefs=*/0));
}

bool CanMask(const CpuFeatures& features, int lanes) {
  return features.avx512f && features.avx512vl && (lanes == 4 || lanes == 8 || lanes == 16);
}

llvm::Intrinsic::ID ForLanes(int lanes, const IntrinsicByLanes& intrinsics) {
  return intrinsics[lanes == 4 ? 0 : lanes == 8 ? 1 : 2];
}

llvm::Value* EmitMasked(Builder& b, llvm::SmallVector<llvm::Value*, 5> args,
                        const IntrinsicByLanes& intrinsics, llvm::Value* kept, bool rounds) {
  constexpr int kCurrentRounding = 4, kLeastBits = 8;
  const int lanes = LanesOf(args[0]);
  llvm::Type* bits = b.getIntNTy(std::max(lanes, kLeastBits));
  llvm::Value* mask = llvm::Constant::getAllOnesValue(bits);
  if (kept) mask = b.CreateZExtOrBitCast(b.CreateBitCast(kept, b.getIntNTy(lanes)), bits);
  args.push_back(llvm::Constant::getNullValue(args[0]->getType()));
  args.push_back(mask);
  if (rounds && lanes == 16) args.push_back(b.getInt32(kCurrentRounding));
  return b.CreateIntrinsic(ForLanes(lanes, intrinsics), {}, args);
}

llvm::Type* Numbers::RegisterType(DType dtype, int lanes) const {
  llvm::Type* element = dtype == DType::kF64    ? b_.getDoubleTy()
                        : IsFloat(dtype)        ? b_.getFloatTy()
                        : dtype == DType::kBool ? b_.getInt1Ty()
                                                : b_.getIntNTy(8 * DTypeBytes(dtype));
  return WithLanes(element, lanes);
}

llvm::Type* Numbers::MemoryType(DType dtype, int lanes) const {
  if (!IsNarrowFloat(dtype) && dtype != DType::kBool) return RegisterType(dtype, lanes);
  return WithLanes(b_.getIntNTy(8 * DTypeBytes(dtype)), lanes);
}

llvm::Value* Numbers::FromMemory(DType dtype, llvm::Value* stored) const {
  if (dtype == DType::kBF16)
    return AsFloat(b_.CreateShl(b_.CreateZExt(stored, Like(stored, b_.getInt32Ty())), 16));
  if (dtype == DType::kBool) return b_.CreateICmpNE(stored, Int(stored, 0));
  return IsNarrowFloat(dtype) ? FromNarrowBits(dtype, stored) : stored;
}

llvm::Value* Numbers::ToMemory(DType dtype, llvm::Value* value) const {
  // The value is representable already: the upper half of the bits is the number.
  if (dtype == DType::kBF16)
    return b_.CreateTrunc(b_.CreateLShr(AsInt(value), 16), Like(value, b_.getInt16Ty()));
  if (dtype == DType::kBool) return b_.CreateZExt(value, Like(value, b_.getInt8Ty()));
  return IsNarrowFloat(dtype) ? NarrowBits(dtype, value) : value;
}

llvm::Value* Numbers::Constant(DType dtype, Scalar value) const {
  llvm::Type* type = RegisterType(dtype);
  if (IsFloat(dtype)) return llvm::ConstantFP::get(type, value.f);
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(value.i), /*IsSigned=*/true);
}

llvm::Value* Numbers::IntToFloat(DType to, DType from, llvm::Value* i) const {
  const auto convert = [&](llvm::Value* value, llvm::Type* element) {
    llvm::Type* type = Like(value, element);
    return IsUnsigned(from) ? b_.CreateUIToFP(value, type) : b_.CreateSIToFP(value, type);
  };
  if (to == DType::kF64) return convert(i, b_.getDoubleTy());
  if (to == DType::kF32) return convert(i, b_.getFloatTy());
  if (DTypeBytes(from) <= 2) return Round(to, convert(i, b_.getFloatTy()));  // exact in a float
  if (DTypeBytes(from) == 8) {
    // Bits that do not fit a double become one sticky bit, so that only the rounding to the narrow type
    // counts.
    const uint64_t dropped = IsUnsigned(from) ? 0xfff : 0x7ff;
    llvm::Value* low = b_.CreateAnd(i, Int(i, dropped));
    llvm::Value* sticky =
        b_.CreateSelect(b_.CreateICmpNE(low, Int(i, 0)), Int(i, (dropped + 1) / 2), Int(i, 0));
    llvm::Value* reduced = b_.CreateOr(b_.CreateXor(i, low), sticky);
    llvm::Value* magnitude = Unary(Op::kAbs, from, i);
    i = b_.CreateSelect(b_.CreateICmpUGT(magnitude, Int(i, uint64_t{1} << 53)), reduced, i);
  }
  return NarrowDouble(to, convert(i, b_.getDoubleTy()));
}

// Truncates towards zero and saturates; NaN becomes 0.
llvm::Value* Numbers::FloatToInt(DType to, llvm::Value* f) const {
  if (to == DType::kBool) return b_.CreateFCmpUNE(f, llvm::ConstantFP::get(f->getType(), 0));
  const auto id = IsUnsigned(to) ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat;
  llvm::Type* type = Like(f, RegisterType(to));
  return b_.CreateIntrinsic(id, {type, f->getType()}, {f});
}

llvm::Value* Numbers::Cast(DType to, DType from, llvm::Value* value) const {
  if (to == from) return value;
  if (IsFloat(from)) {
    if (!IsFloat(to)) return FloatToInt(to, value);
    if (to == DType::kF64) return b_.CreateFPExt(value, Like(value, b_.getDoubleTy()));
    if (from != DType::kF64) return Round(to, value);
    return to == DType::kF32 ? b_.CreateFPTrunc(value, Like(value, b_.getFloatTy()))
                             : NarrowDouble(to, value);
  }
  if (IsFloat(to)) return IntToFloat(to, from, value);
  if (to == DType::kBool) return b_.CreateICmpNE(value, Int(value, 0));
  return b_.CreateIntCast(value, Like(value, RegisterType(to)), /*isSigned=*/!IsUnsigned(from));
}

llvm::Value* Numbers::Unary(Op op, DType dtype, llvm::Value* a) const {
  if (IsFloat(dtype)) return IsExact(op) ? FloatUnary(op, dtype, a) : Round(dtype, FloatUnary(op, dtype, a));
  switch (op) {
    case Op::kNot: return b_.CreateNot(a);
    case Op::kNeg: return dtype == DType::kBool ? a : b_.CreateNeg(a);
    case Op::kAbs:
      return IsUnsigned(dtype) ? a : b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, b_.getFalse());
    default: return NoValue(op, dtype);
  }
}

llvm::Value* Numbers::FloatUnary(Op op, DType dtype, llvm::Value* a) const {
  if (IsTranscendental(op)) return EmitMath(b_, features_, op, a, nullptr);
  switch (op) {
    case Op::kNeg: return b_.CreateFNeg(a);
    case Op::kAbs: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
    case Op::kSqrt: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
    case Op::kRsqrt: return Rsqrt(a);
    case Op::kFloor: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, a);
    case Op::kCeil: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, a);
    case Op::kRound: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, a);
    case Op::kTF32: {
      if (dtype != DType::kF64) return TF32(a);
      return b_.CreateFPExt(TF32(b_.CreateFPTrunc(a, Like(a, b_.getFloatTy()))), a->getType());
    }
    default: return NoValue(op, dtype);
  }
}

llvm::Value* Numbers::TF32(llvm::Value* f) const {
  llvm::Value* bits = AsInt(f);
  llvm::Value* rounded = b_.CreateAnd(RoundedAt(bits, 13), Int(bits, ~uint32_t{0x1fff}));
  llvm::Value* exponent = b_.CreateAnd(bits, Int(bits, 0x7f800000));
  return AsFloat(b_.CreateSelect(b_.CreateICmpEQ(exponent, Int(bits, 0x7f800000)), bits, rounded));
}

llvm::Value* Numbers::Binary(Op op, DType dtype, llvm::Value* a, llvm::Value* b) const {
  if (IsFloat(dtype))
    return IsExact(op) ? FloatBinary(op, dtype, a, b) : Round(dtype, FloatBinary(op, dtype, a, b));
  return dtype == DType::kBool ? BoolBinary(op, a, b) : IntBinary(op, dtype, a, b);
}

llvm::Value* Numbers::FloatBinary(Op op, DType dtype, llvm::Value* a, llvm::Value* b) const {
  switch (op) {
    case Op::kAdd: return b_.CreateFAdd(a, b);
    case Op::kSub: return b_.CreateFSub(a, b);
    case Op::kMul: return b_.CreateFMul(a, b);
    case Op::kDiv: return b_.CreateFDiv(a, b);
    case Op::kMin: return Extremum(llvm::Intrinsic::minimum, a, b);
    case Op::kMax: return Extremum(llvm::Intrinsic::maximum, a, b);
    case Op::kPow: return EmitMath(b_, features_, op, a, b);
    default: return NoValue(op, dtype);
  }
}

// NaN propagates. The sign of a zero result is not defined. So this is a maximum and a blend on x86, and only
// a maximum if one operand cannot be NaN.
llvm::Value* Numbers::Extremum(llvm::Intrinsic::ID id, llvm::Value* a, llvm::Value* b) const {
  const Builder::FastMathFlagGuard guard(b_);
  b_.getFastMathFlags().setNoSignedZeros();
  return b_.CreateBinaryIntrinsic(id, a, b);
}

// 1 / sqrt(a), by two correctly rounded operations. If the target has an estimate with 14 bits for all
// numbers including subnormal ones: by the estimate and one Newton step. For zero and infinity the step gives
// NaN, but the estimate is exact.
llvm::Value* Numbers::Rsqrt(llvm::Value* a) const {
  llvm::Constant* one = llvm::ConstantFP::get(a->getType(), 1);
  llvm::Value* estimate = RsqrtEstimate(a);
  if (estimate == nullptr) return b_.CreateFDiv(one, b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a));
  llvm::Constant* half = llvm::ConstantFP::get(a->getType(), 0.5);
  const auto fma = [&](llvm::Value* x, llvm::Value* y, llvm::Value* z) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {x, y, z});
  };
  llvm::Value* rest = fma(b_.CreateFNeg(b_.CreateFMul(a, estimate)), estimate, one);
  llvm::Value* refined = fma(b_.CreateFMul(estimate, half), rest, estimate);
  return b_.CreateSelect(b_.CreateFCmpUNO(rest, rest), estimate, refined);
}

// The target's estimate of 1 / sqrt(a); null when it has none.
llvm::Value* Numbers::RsqrtEstimate(llvm::Value* a) const {
  if (!CanMask(features_, LanesOf(a)) || !a->getType()->getScalarType()->isFloatTy()) return nullptr;
  return EmitMasked(b_, {a},
                    {llvm::Intrinsic::x86_avx512_rsqrt14_ps_128, llvm::Intrinsic::x86_avx512_rsqrt14_ps_256,
                     llvm::Intrinsic::x86_avx512_rsqrt14_ps_512},
                    /*kept=*/nullptr, /*rounds=*/false);
}

// Emits a * (1 / divisor), and in a rarely taken branch the division, for reciprocals that are not normal
// numbers.
llvm::Value* Numbers::DivideByScalar(DType dtype, llvm::Value* a, llvm::Value* divisor) const {
  const int lanes = LanesOf(a);
  const auto number = [&](double value) { return llvm::ConstantFP::get(divisor->getType(), value); };
  llvm::Value* magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, divisor);
  llvm::Value* is_near = b_.CreateAnd(b_.CreateFCmpOGE(magnitude, number(0x1p-126)),
                                      b_.CreateFCmpOLE(magnitude, number(0x1p126)));
  llvm::Value* reciprocal = b_.CreateVectorSplat(lanes, b_.CreateFDiv(number(1), divisor));
  const auto product = [&] { return b_.CreateFMul(a, reciprocal); };
  const auto quotient = [&] { return b_.CreateFDiv(a, b_.CreateVectorSplat(lanes, divisor)); };
  if (llvm::isa<llvm::Constant>(is_near)) {
    const bool multiplies = llvm::cast<llvm::Constant>(is_near)->isOneValue();
    return Round(dtype, multiplies ? product() : quotient());
  }
  return Round(dtype, EmitChoice(b_, is_near, product, quotient,
                                 llvm::MDBuilder(b_.getContext()).createLikelyBranchWeights()));
}

// a / sqrt(b) without a division; null when the target has no estimate. Special values are the same as with a
// division, because the reciprocal of a root neither overflows nor is subnormal.
llvm::Value* Numbers::DivideByRoot(llvm::Value* a, llvm::Value* b) const {
  if (RsqrtEstimate(b) == nullptr) return nullptr;
  return b_.CreateFMul(a, Rsqrt(b));
}

llvm::Value* Numbers::BoolBinary(Op op, llvm::Value* a, llvm::Value* b) const {
  switch (op) {
    case Op::kAnd:
    case Op::kMul:
    case Op::kMin: return b_.CreateAnd(a, b);
    case Op::kOr:
    case Op::kAdd:
    case Op::kMax: return b_.CreateOr(a, b);
    case Op::kSub: return b_.CreateXor(a, b);
    default: return NoValue(op, DType::kBool);
  }
}

llvm::Value* Numbers::IntBinary(Op op, DType dtype, llvm::Value* a, llvm::Value* b) const {
  const bool is_unsigned = IsUnsigned(dtype);
  switch (op) {
    case Op::kAdd: return b_.CreateAdd(a, b);
    case Op::kSub: return b_.CreateSub(a, b);
    case Op::kMul: return b_.CreateMul(a, b);
    case Op::kMin:
      return b_.CreateBinaryIntrinsic(is_unsigned ? llvm::Intrinsic::umin : llvm::Intrinsic::smin, a, b);
    case Op::kMax:
      return b_.CreateBinaryIntrinsic(is_unsigned ? llvm::Intrinsic::umax : llvm::Intrinsic::smax, a, b);
    case Op::kFloorDiv: return FloorDivide(dtype, a, b).first;
    case Op::kMod: return FloorDivide(dtype, a, b).second;
    default: return NoValue(op, dtype);
  }
}

// Division by zero gives quotient and remainder 0. Operands that are undefined in LLVM (a divisor of 0, and
// -1 for the lowest integer) are divided by 1 instead.
std::pair<llvm::Value*, llvm::Value*> Numbers::FloorDivide(DType dtype, llvm::Value* a,
                                                           llvm::Value* b) const {
  llvm::Value* zero = Int(a, 0);
  llvm::Value* one = Int(a, 1);
  llvm::Value* by_zero = b_.CreateICmpEQ(b, zero);
  if (IsUnsigned(dtype)) {
    llvm::Value* divisor = b_.CreateSelect(by_zero, one, b);
    llvm::Value* remainder = b_.CreateSelect(by_zero, zero, b_.CreateURem(a, divisor));
    return {b_.CreateSelect(by_zero, zero, b_.CreateUDiv(a, divisor)), remainder};
  }
  llvm::Value* by_minus_one = b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(b->getType()));
  llvm::Value* divisor = b_.CreateSelect(b_.CreateOr(by_zero, by_minus_one), one, b);
  llvm::Value* quotient = b_.CreateSDiv(a, divisor);
  llvm::Value* rest = b_.CreateSub(a, b_.CreateMul(quotient, divisor));
  // Floored: the quotient is one less if the remainder is not 0 and has not the divisor's sign.
  llvm::Value* opposite = b_.CreateICmpSLT(b_.CreateXor(rest, divisor), zero);
  llvm::Value* down = b_.CreateAnd(b_.CreateICmpNE(rest, zero), opposite);
  llvm::Value* remainder =
      b_.CreateSelect(by_zero, zero, b_.CreateSelect(down, b_.CreateAdd(rest, divisor), rest));
  llvm::Value* floored = b_.CreateSelect(down, b_.CreateSub(quotient, one), quotient);
  return {b_.CreateSelect(by_zero, zero, b_.CreateSelect(by_minus_one, b_.CreateNeg(a), floored)), remainder};
}

llvm::Value* Numbers::Compare(Op op, DType operand, llvm::Value* a, llvm::Value* b) const {
  using Is = llvm::CmpInst;
  const bool is_float = IsFloat(operand), is_unsigned = IsUnsigned(operand);
  switch (op) {
    case Op::kLt:
      return b_.CreateCmp(is_float ? Is::FCMP_OLT : is_unsigned ? Is::ICMP_ULT : Is::ICMP_SLT, a, b);
    case Op::kLe:
      return b_.CreateCmp(is_float ? Is::FCMP_OLE : is_unsigned ? Is::ICMP_ULE : Is::ICMP_SLE, a, b);
    case Op::kEq: return b_.CreateCmp(is_float ? Is::FCMP_OEQ : Is::ICMP_EQ, a, b);
    default: return b_.CreateCmp(is_float ? Is::FCMP_UNE : Is::ICMP_NE, a, b);
  }
}

}  // namespace mycc
