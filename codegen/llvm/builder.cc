// Emits each operation as a short sequence of LLVM instructions with the result of expr/eval.h.
#include "codegen/llvm/builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/MDBuilder.h"

namespace mycc {
namespace {

// For operations that a type does not have.
Value* NoValue(Op op, DType dtype) {
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

intrinsic::ID IntrinsicNamed(llvm::StringRef name) {
  const intrinsic::ID id = llvm::Function::lookupIntrinsicID(name);
  MYCC_CHECK(id != intrinsic::not_intrinsic) << "LLVM has no intrinsic " << name.str();
  return id;
}

Builder::Builder(const llvm::Module& module, const CpuFeatures& features)
    : IRBuilder(module.getContext(), llvm::TargetFolder(module.getDataLayout())), features(features) {
  // contract: a product and its sum may be rounded once. No reassoc: only reductions are reassociated, by
  // passes, and (x + big) - big keeps its meaning. No arcp: the reciprocal of a subnormal number is infinite,
  // and LLVM's refined estimates are wrong for zero and infinity.
  FMF.setAllowContract();
}

Value* Builder::Splat(Value* value, int lanes) {
  return lanes == 1 || IsVector(value) ? value : CreateVectorSplat(lanes, value);
}

Value* Builder::HalfOf(Value* vector, int half) {
  const int lanes = LanesOf(vector) / 2;
  return CreateShuffleVector(vector, llvm::createSequentialMask(half * lanes, lanes, /*NumUndefs=*/0));
}

Value* Builder::OfLanes(llvm::StringRef name, int lanes, llvm::ArrayRef<Value*> args) {
  return CreateIntrinsic(IntrinsicNamed(absl::StrCat("llvm.x86.", name.str(), ".", 32 * lanes)), {}, args);
}

bool Builder::CanMask(int lanes) const {
  return features.avx512f && features.avx512vl && (lanes == 4 || lanes == 8 || lanes == 16);
}

Value* Builder::Masked(llvm::StringRef name, llvm::SmallVector<Value*, 5> args, bool rounds, Value* kept) {
  constexpr int kCurrentRounding = 4, kLeastBits = 8;
  const int lanes = LanesOf(args[0]);
  llvm::Type* bits = getIntNTy(std::max(lanes, kLeastBits));
  Value* mask = llvm::Constant::getAllOnesValue(bits);
  if (kept) mask = CreateZExtOrBitCast(CreateBitCast(kept, getIntNTy(lanes)), bits);
  args.push_back(llvm::Constant::getNullValue(args[0]->getType()));
  args.push_back(mask);
  if (rounds && lanes == 16) args.push_back(getInt32(kCurrentRounding));
  return OfLanes(name, lanes, args);
}

Value* Builder::AtMost(Value* f, double bound) {
  llvm::Constant* limit = Float(f, bound);
  return CreateSelect(CreateFCmpOGT(f, limit), limit, f);
}

llvm::Type* Builder::RegisterType(DType dtype, int lanes) {
  llvm::Type* element = dtype == DType::kF64    ? getDoubleTy()
                        : IsFloat(dtype)        ? getFloatTy()
                        : dtype == DType::kBool ? getInt1Ty()
                                                : getIntNTy(8 * DTypeBytes(dtype));
  return WithLanes(element, lanes);
}

llvm::Type* Builder::MemoryType(DType dtype, int lanes) {
  if (!IsNarrowFloat(dtype) && dtype != DType::kBool) return RegisterType(dtype, lanes);
  return WithLanes(getIntNTy(8 * DTypeBytes(dtype)), lanes);
}

Value* Builder::FromMemory(DType dtype, Value* stored) {
  if (dtype == DType::kBF16) return AsFloat(CreateShl(CreateZExt(stored, Like(stored, getInt32Ty())), 16));
  if (dtype == DType::kBool) return CreateICmpNE(stored, Int(stored, 0));
  return IsNarrowFloat(dtype) ? FromNarrowBits(dtype, stored) : stored;
}

Value* Builder::ToMemory(DType dtype, Value* value) {
  // The value is representable already: the upper half of the bits is the number.
  if (dtype == DType::kBF16) return CreateTrunc(CreateLShr(AsInt(value), 16), Like(value, getInt16Ty()));
  if (dtype == DType::kBool) return CreateZExt(value, Like(value, getInt8Ty()));
  return IsNarrowFloat(dtype) ? NarrowBits(dtype, value) : value;
}

llvm::Constant* Builder::Constant(DType dtype, Scalar value) {
  llvm::Type* type = RegisterType(dtype);
  if (IsFloat(dtype)) return llvm::ConstantFP::get(type, value.f);
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(value.i), /*IsSigned=*/true);
}

Value* Builder::IntToFloat(DType to, DType from, Value* i) {
  const auto convert = [&](Value* value, llvm::Type* element) {
    llvm::Type* type = Like(value, element);
    return IsUnsigned(from) ? CreateUIToFP(value, type) : CreateSIToFP(value, type);
  };
  if (to == DType::kF64) return convert(i, getDoubleTy());
  if (to == DType::kF32) return convert(i, getFloatTy());
  if (DTypeBytes(from) <= 2) return Round(to, convert(i, getFloatTy()));  // exact in a float
  if (DTypeBytes(from) == 8) {
    // Bits that do not fit a double become one sticky bit, so that only the rounding to the narrow type
    // counts.
    const uint64_t dropped = IsUnsigned(from) ? 0xfff : 0x7ff;
    Value* low = CreateAnd(i, Int(i, dropped));
    Value* sticky = CreateSelect(CreateICmpNE(low, Int(i, 0)), Int(i, (dropped + 1) / 2), Int(i, 0));
    Value* reduced = CreateOr(CreateXor(i, low), sticky);
    Value* magnitude = Unary(Op::kAbs, from, i);
    i = CreateSelect(CreateICmpUGT(magnitude, Int(i, uint64_t{1} << 53)), reduced, i);
  }
  return NarrowDouble(to, convert(i, getDoubleTy()));
}

// Truncates towards zero and saturates; NaN becomes 0.
Value* Builder::FloatToInt(DType to, Value* f) {
  if (to == DType::kBool) return CreateFCmpUNE(f, Float(f, 0));
  const auto id = IsUnsigned(to) ? intrinsic::fptoui_sat : intrinsic::fptosi_sat;
  llvm::Type* type = Like(f, RegisterType(to));
  return CreateIntrinsic(id, {type, f->getType()}, {f});
}

Value* Builder::Cast(DType to, DType from, Value* value) {
  if (to == from) return value;
  if (IsFloat(from)) {
    if (!IsFloat(to)) return FloatToInt(to, value);
    if (to == DType::kF64) return CreateFPExt(value, Like(value, getDoubleTy()));
    if (from != DType::kF64) return Round(to, value);
    return to == DType::kF32 ? CreateFPTrunc(value, Like(value, getFloatTy())) : NarrowDouble(to, value);
  }
  if (IsFloat(to)) return IntToFloat(to, from, value);
  if (to == DType::kBool) return CreateICmpNE(value, Int(value, 0));
  return CreateIntCast(value, Like(value, RegisterType(to)), /*isSigned=*/!IsUnsigned(from));
}

Value* Builder::Unary(Op op, DType dtype, Value* a) {
  if (IsFloat(dtype)) return IsExact(op) ? FloatUnary(op, dtype, a) : Round(dtype, FloatUnary(op, dtype, a));
  switch (op) {
    case Op::kNot: return CreateNot(a);
    case Op::kNeg: return dtype == DType::kBool ? a : CreateNeg(a);
    case Op::kAbs: return IsUnsigned(dtype) ? a : CreateBinaryIntrinsic(intrinsic::abs, a, getFalse());
    default: return NoValue(op, dtype);
  }
}

Value* Builder::FloatUnary(Op op, DType dtype, Value* a) {
  if (IsTranscendental(op)) return Function(op, a);
  switch (op) {
    case Op::kNeg: return CreateFNeg(a);
    case Op::kAbs: return Abs(a);
    case Op::kSqrt: return CreateUnaryIntrinsic(intrinsic::sqrt, a);
    case Op::kRsqrt: return Rsqrt(a);
    case Op::kFloor: return CreateUnaryIntrinsic(intrinsic::floor, a);
    case Op::kCeil: return CreateUnaryIntrinsic(intrinsic::ceil, a);
    case Op::kRound: return CreateUnaryIntrinsic(intrinsic::roundeven, a);
    case Op::kTF32:
      if (dtype != DType::kF64) return TF32(a);
      return CreateFPExt(TF32(CreateFPTrunc(a, Like(a, getFloatTy()))), a->getType());
    default: return NoValue(op, dtype);
  }
}

Value* Builder::TF32(Value* f) {
  Value* bits = AsInt(f);
  Value* rounded = CreateAnd(RoundedAt(bits, 13), Int(bits, ~uint32_t{0x1fff}));
  Value* exponent = CreateAnd(bits, Int(bits, 0x7f800000));
  return AsFloat(CreateSelect(CreateICmpEQ(exponent, Int(bits, 0x7f800000)), bits, rounded));
}

Value* Builder::Binary(Op op, DType dtype, Value* a, Value* b) {
  if (IsFloat(dtype))
    return IsExact(op) ? FloatBinary(op, dtype, a, b) : Round(dtype, FloatBinary(op, dtype, a, b));
  return dtype == DType::kBool ? BoolBinary(op, a, b) : IntBinary(op, dtype, a, b);
}

Value* Builder::FloatBinary(Op op, DType dtype, Value* a, Value* b) {
  switch (op) {
    case Op::kAdd: return CreateFAdd(a, b);
    case Op::kSub: return CreateFSub(a, b);
    case Op::kMul: return CreateFMul(a, b);
    case Op::kDiv: return CreateFDiv(a, b);
    case Op::kMin:
    case Op::kMax: {
      // NaN propagates. The sign of a zero result is not defined. So this is a maximum and a blend on x86,
      // and only a maximum if one operand cannot be NaN.
      const FastMathFlagGuard guard(*this);
      FMF.setNoSignedZeros();
      return CreateBinaryIntrinsic(op == Op::kMin ? intrinsic::minimum : intrinsic::maximum, a, b);
    }
    case Op::kPow: return Function(op, a, b);
    default: return NoValue(op, dtype);
  }
}

// 1 / sqrt(a), by two correctly rounded operations. If the target has an estimate with 14 bits for all
// numbers including subnormal ones: by the estimate and one Newton step. For zero and infinity the step gives
// NaN, but the estimate is exact.
Value* Builder::Rsqrt(Value* a) {
  llvm::Constant* one = Float(a, 1);
  Value* estimate = RsqrtEstimate(a);
  if (estimate == nullptr) return CreateFDiv(one, CreateUnaryIntrinsic(intrinsic::sqrt, a));
  const auto fma = [&](Value* x, Value* y, Value* z) {
    return CreateIntrinsic(intrinsic::fma, {a->getType()}, {x, y, z});
  };
  Value* rest = fma(CreateFNeg(CreateFMul(a, estimate)), estimate, one);
  Value* refined = fma(CreateFMul(estimate, Float(a, 0.5)), rest, estimate);
  return CreateSelect(CreateFCmpUNO(rest, rest), estimate, refined);
}

// The target's estimate of 1 / sqrt(a); null when it has none.
Value* Builder::RsqrtEstimate(Value* a) {
  if (!CanMask(LanesOf(a)) || !a->getType()->getScalarType()->isFloatTy()) return nullptr;
  return Masked("avx512.rsqrt14.ps", {a}, /*rounds=*/false);
}

// Emits a * (1 / divisor), and in a rarely taken branch the division, for reciprocals that are not normal
// numbers.
Value* Builder::DivideByScalar(DType dtype, Value* a, Value* divisor) {
  const int lanes = LanesOf(a);
  Value* magnitude = Abs(divisor);
  Value* is_near = CreateAnd(CreateFCmpOGE(magnitude, Float(divisor, 0x1p-126)),
                             CreateFCmpOLE(magnitude, Float(divisor, 0x1p126)));
  Value* reciprocal = CreateVectorSplat(lanes, CreateFDiv(Float(divisor, 1), divisor));
  const auto product = [&] { return CreateFMul(a, reciprocal); };
  const auto quotient = [&] { return CreateFDiv(a, CreateVectorSplat(lanes, divisor)); };
  if (llvm::isa<llvm::Constant>(is_near)) {
    const bool multiplies = llvm::cast<llvm::Constant>(is_near)->isOneValue();
    return Round(dtype, multiplies ? product() : quotient());
  }
  return Round(dtype,
               Choice(is_near, product, quotient, llvm::MDBuilder(getContext()).createLikelyBranchWeights()));
}

// a / sqrt(b) without a division; null when the target has no estimate. Special values are the same as with a
// division, because the reciprocal of a root neither overflows nor is subnormal.
Value* Builder::DivideByRoot(Value* a, Value* b) {
  if (RsqrtEstimate(b) == nullptr) return nullptr;
  return CreateFMul(a, Rsqrt(b));
}

Value* Builder::BoolBinary(Op op, Value* a, Value* b) {
  switch (op) {
    case Op::kAnd:
    case Op::kMul:
    case Op::kMin: return CreateAnd(a, b);
    case Op::kOr:
    case Op::kAdd:
    case Op::kMax: return CreateOr(a, b);
    case Op::kSub: return CreateXor(a, b);
    default: return NoValue(op, DType::kBool);
  }
}

Value* Builder::IntBinary(Op op, DType dtype, Value* a, Value* b) {
  const bool is_unsigned = IsUnsigned(dtype);
  switch (op) {
    case Op::kAdd: return CreateAdd(a, b);
    case Op::kSub: return CreateSub(a, b);
    case Op::kMul: return CreateMul(a, b);
    case Op::kMin: return CreateBinaryIntrinsic(is_unsigned ? intrinsic::umin : intrinsic::smin, a, b);
    case Op::kMax: return CreateBinaryIntrinsic(is_unsigned ? intrinsic::umax : intrinsic::smax, a, b);
    case Op::kFloorDiv: return FloorDivide(dtype, a, b).first;
    case Op::kMod: return FloorDivide(dtype, a, b).second;
    default: return NoValue(op, dtype);
  }
}

// Division by zero gives quotient and remainder 0. Operands that are undefined in LLVM (a divisor of 0, and
// -1 for the lowest integer) are divided by 1 instead.
std::pair<Value*, Value*> Builder::FloorDivide(DType dtype, Value* a, Value* b) {
  Value* zero = Int(a, 0);
  Value* one = Int(a, 1);
  Value* by_zero = CreateICmpEQ(b, zero);
  if (IsUnsigned(dtype)) {
    Value* divisor = CreateSelect(by_zero, one, b);
    Value* remainder = CreateSelect(by_zero, zero, CreateURem(a, divisor));
    return {CreateSelect(by_zero, zero, CreateUDiv(a, divisor)), remainder};
  }
  Value* by_minus_one = CreateICmpEQ(b, llvm::Constant::getAllOnesValue(b->getType()));
  Value* divisor = CreateSelect(CreateOr(by_zero, by_minus_one), one, b);
  Value* quotient = CreateSDiv(a, divisor);
  Value* rest = CreateSub(a, CreateMul(quotient, divisor));
  // Floored: the quotient is one less if the remainder is not 0 and has not the divisor's sign.
  Value* opposite = CreateICmpSLT(CreateXor(rest, divisor), zero);
  Value* down = CreateAnd(CreateICmpNE(rest, zero), opposite);
  Value* remainder = CreateSelect(by_zero, zero, CreateSelect(down, CreateAdd(rest, divisor), rest));
  Value* floored = CreateSelect(down, CreateSub(quotient, one), quotient);
  return {CreateSelect(by_zero, zero, CreateSelect(by_minus_one, CreateNeg(a), floored)), remainder};
}

Value* Builder::Compare(Op op, DType operand, Value* a, Value* b) {
  using Is = llvm::CmpInst;
  const bool is_float = IsFloat(operand), is_unsigned = IsUnsigned(operand);
  switch (op) {
    case Op::kLt: return CreateCmp(is_float ? Is::FCMP_OLT : is_unsigned ? Is::ICMP_ULT : Is::ICMP_SLT, a, b);
    case Op::kLe: return CreateCmp(is_float ? Is::FCMP_OLE : is_unsigned ? Is::ICMP_ULE : Is::ICMP_SLE, a, b);
    case Op::kEq: return CreateCmp(is_float ? Is::FCMP_OEQ : Is::ICMP_EQ, a, b);
    default: return CreateCmp(is_float ? Is::FCMP_UNE : Is::ICMP_NE, a, b);
  }
}

}  // namespace mycc
