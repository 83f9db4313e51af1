// Emits elementary functions on floats and vectors of floats as straight-line code without calls (f64: libm,
// lane by lane).
//
// The errors are those of expr/accuracy.h; infinities, NaN, zeros and subnormals give what C's functions
// return. tests/llvm/functions_test.cc checks both. sin and cos of more than 1e6 call libm. The polynomials
// were fitted by Remez exchange in 50 digits and rounded to float.
#include <array>
#include <limits>

#include "base/check.h"
#include "codegen/llvm/builder.h"

namespace mycc {
namespace {

constexpr double kLog2E = 1.4426950408889634;
// ln 2 in two floats; the first has few bits, so that a small integer times it is exact.
constexpr double kLn2 = 0.69314718055994531, kLn2High = 0.693359375, kLn2Low = -2.12194440e-4;
// 1.5 * 2^23: adding it leaves the nearest integer in a float's low bits.
constexpr double kMagic = 12582912.0;
constexpr int kExponentBias = 127;
// The polynomial of e^(factor * r), |factor * r| <= ln 2 / 2, from the constant up.
constexpr std::array<double, 7> ExpPolynomial(double factor) {
  std::array<double, 7> result = {
      1, 1, 0.4999999343, 0.1666652039, 0.04166839089, 0.008368745581, 0.001381453517};
  for (size_t power = 0; power < result.size(); ++power) {
    for (size_t i = 0; i < power; ++i) result[power] *= factor;
  }
  return result;
}

// A call of libm that LLVM may move: the kernel does not use errno.
Value* CallLibm(Builder& b, llvm::StringRef function, llvm::ArrayRef<Value*> args) {
  llvm::Type* type = args[0]->getType();
  llvm::Module* module = b.GetInsertBlock()->getModule();
  const llvm::SmallVector<llvm::Type*, 2> types(args.size(), type);
  llvm::FunctionCallee callee =
      module->getOrInsertFunction(function, llvm::FunctionType::get(type, types, false));
  auto* declared = llvm::cast<llvm::Function>(callee.getCallee());
  declared->setDoesNotThrow();
  declared->setMemoryEffects(llvm::MemoryEffects::none());
  declared->setWillReturn();
  return b.CreateCall(callee, args);
}

Value* ByLane(Builder& b, llvm::StringRef function, llvm::ArrayRef<Value*> args) {
  if (!args[0]->getType()->isVectorTy()) return CallLibm(b, function, args);
  Value* result = llvm::PoisonValue::get(args[0]->getType());
  for (int lane = 0; lane < LanesOf(args[0]); ++lane) {
    llvm::SmallVector<Value*, 2> elements;
    for (Value* arg : args) elements.push_back(b.CreateExtractElement(arg, lane));
    result = b.CreateInsertElement(result, CallLibm(b, function, elements), lane);
  }
  return result;
}

// Functions on f32; the argument is a scalar or a vector.
class FloatMath {
 public:
  FloatMath(Builder& builder, const Value* x)
      : b_(builder), lanes_(LanesOf(x)), type_(x->getType()), int_type_(Wide(b_.getInt32Ty())) {}

  Value* Exp(Value* x) const {
    // Beyond these the result is infinite or zero; NaN passes both selects.
    Value* clamped = b_.AtMost(x, 89);
    Value* vanishes = b_.CreateFCmpOLT(clamped, F(-104));
    clamped = b_.CreateSelect(vanishes, F(-104), clamped);
    // The integer's low bits hold n and twice the bias, for the two factors of a power of two.
    const Integer n = Nearest(clamped, F(kLog2E), 2 * kExponentBias);
    Value* r = b_.MulAdd(n.value, F(-kLn2High), clamped);
    r = b_.MulAdd(n.value, F(-kLn2Low), r);
    Value* power = Polynomial(r, ExpPolynomial(1));
    // A zero stays one: numbers that underflow take a hundred times as long. Masked scores are -inf.
    return Scaled(b_.CreateSelect(vanishes, F(0), power), n);
  }

  // The fraction needs no reduction: 2^x = 2^n * e^((x - n) * ln 2).
  Value* Exp2(Value* x) const {
    if (b_.CanMask(lanes_)) return Exp2ByScaling(x);
    Value* vanishes = b_.CreateFCmpOLT(x, F(-150));
    Value* clamped = b_.CreateSelect(vanishes, F(-150), b_.AtMost(x, 129));
    const Integer n = Nearest(clamped, F(1), 2 * kExponentBias);
    Value* power = Exp2OfFraction(b_.CreateFSub(clamped, n.value));
    return Scaled(b_.CreateSelect(vanishes, F(0), power), n);
  }

  Value* Log(Value* x) const {
    Value* subnormal = b_.CreateFCmpOLT(x, F(0x1p-126));
    Value* scaled = b_.CreateSelect(subnormal, b_.CreateFMul(x, F(0x1p23)), x);
    // x = 2^k * m with m in [2/3, 4/3).
    Value* bits = b_.AsInt(scaled);
    Value* k = b_.CreateAShr(b_.CreateSub(bits, I(0x3f2aaaab)), 23);
    Value* m = b_.AsFloat(b_.CreateSub(bits, b_.CreateShl(k, 23)));
    Value* exponent = b_.CreateSIToFP(b_.CreateSub(k, b_.CreateSelect(subnormal, I(23), I(0))), type_);
    // log(1 + f) = f - f^2/2 + f^3 * p(f).
    Value* f = b_.CreateFSub(m, F(1));
    Value* p = Polynomial(f, {0.333333373, -0.249998197, 0.199993089, -0.166795969, 0.143127888, -0.121955417,
                              0.106618136, -0.128460452, 0.12356548});
    Value* square = b_.CreateFMul(f, f);
    Value* tail = b_.CreateFMul(b_.CreateFMul(square, f), p);
    tail = b_.MulAdd(exponent, F(kLn2Low), tail);
    tail = b_.MulAdd(square, F(-0.5), tail);
    Value* result = b_.MulAdd(exponent, F(kLn2High), b_.CreateFAdd(f, tail));
    result = b_.CreateSelect(b_.CreateFCmpOEQ(x, F(0)), F(-kInf), result);
    result = b_.CreateSelect(b_.CreateFCmpOEQ(x, F(kInf)), x, result);
    return b_.CreateSelect(b_.CreateFCmpULT(x, F(0)), F(kNan), result);
  }

  // (e^2x - 1) / (e^2x - 1 + 2): exact to the last bits for small x as well.
  Value* Tanh(Value* x) const {
    Value* bounded = b_.AtMost(b_.Abs(x), 10);
    const Reduced reduced = ReduceExp(bounded, 2);
    Value* grown = b_.MulAdd(reduced.scale, reduced.exp_minus_one, b_.CreateFSub(reduced.scale, F(1)));
    return b_.CreateCopySign(b_.CreateFDiv(grown, b_.CreateFAdd(grown, F(2))), x);
  }

  // x * p(x^2) up to 0.9; above, 1 - e^q(|x|) with q fitted to log(erfc).
  Value* Erf(Value* x) const {
    Value* magnitude = b_.Abs(x);
    Value* square = b_.CreateFMul(x, x);
    Value* small = b_.CreateFMul(x, Polynomial(square, {1.12837911, -0.376125246, 0.112821408, -0.0267789084,
                                                        0.00501196273, -0.000609036069}));
    Value* q =
        Polynomial(b_.AtMost(magnitude, 4), {0.00016780624, -1.12948179, -0.633413911, -0.108206317,
                                             0.0250717364, -0.00415296806, 0.000430733053, -2.07730318e-05});
    const Reduced reduced = ReduceExp(q, 1);
    Value* erfc = b_.MulAdd(reduced.scale, reduced.exp_minus_one, reduced.scale);
    Value* large = b_.CreateCopySign(b_.CreateFSub(F(1), erfc), x);
    return b_.CreateSelect(b_.CreateFCmpOLT(magnitude, F(0.9)), small, large);
  }

  // Reduction to [-pi/4, pi/4] in double; arguments so large that their quadrant needs more bits go to libm.
  Value* Sin(Value* x, bool cosine) const {
    Value* wide = b_.CreateFPExt(x, Wide(b_.getDoubleTy()));
    Value* quadrant = b_.CreateUnaryIntrinsic(intrinsic::rint, b_.CreateFMul(wide, D(0.63661977236758134)));
    // pi/2 in three parts; the first two have 33 bits, so that a quadrant of 20 bits times them is exact
    // without FMA too.
    Value* rest = b_.MulAdd(quadrant, D(-0x1.921fb544p+0), wide);
    rest = b_.MulAdd(quadrant, D(-0x1.0b4611a6p-34), rest);
    rest = b_.MulAdd(quadrant, D(-0x1.3198a2e037073p-69), rest);
    Value* r = b_.CreateFPTrunc(rest, type_);
    // If the quadrant does not fit, libm's result is used instead.
    Value* n = b_.CreateIntrinsic(intrinsic::fptosi_sat, {int_type_, quadrant->getType()}, {quadrant});
    if (cosine) n = b_.CreateAdd(n, I(1));
    Value* square = b_.CreateFMul(r, r);
    Value* sine_tail = Polynomial(square, {-0.166666672, 0.00833332911, -0.000198393274, 2.71824115e-06});
    Value* sine = b_.MulAdd(b_.CreateFMul(square, r), sine_tail, r);
    Value* cosine_tail = Polynomial(square, {0.0416666679, -0.00138888834, 2.4799514e-05, -2.72097026e-07});
    Value* cosine_value =
        b_.MulAdd(b_.CreateFMul(square, square), cosine_tail, b_.MulAdd(square, F(-0.5), F(1)));
    Value* odd = b_.CreateICmpNE(b_.CreateAnd(n, I(1)), I(0));
    Value* value = b_.CreateSelect(odd, cosine_value, sine);
    Value* sign = b_.CreateShl(b_.CreateAnd(n, I(2)), 30);
    Value* result = b_.AsFloat(b_.CreateXor(b_.AsInt(value), sign));
    // Zeros keep their sign, which the reduction loses.
    if (!cosine) result = b_.CreateSelect(b_.CreateFCmpOEQ(x, F(0)), x, result);
    return LibmBeyond(1e6, x, result, cosine ? "cosf" : "sinf");
  }

  // 2^(y * log2|x|) in double.
  Value* Pow(Value* x, Value* y) const {
    Value* wide_y = b_.CreateFPExt(y, Wide(b_.getDoubleTy()));
    Value* magnitude = b_.Abs(x);
    Value* power = b_.CreateFPTrunc(Exp2InDouble(b_.CreateFMul(wide_y, Log2(magnitude))), type_);
    // C's special cases.
    Value* whole = b_.CreateFCmpOEQ(b_.CreateUnaryIntrinsic(intrinsic::trunc, y), y);
    Value* half = b_.CreateFMul(y, F(0.5));
    Value* odd = b_.CreateAnd(whole, b_.CreateFCmpONE(b_.CreateUnaryIntrinsic(intrinsic::trunc, half), half));
    Value* sign = b_.CreateAnd(b_.AsInt(x), b_.CreateSelect(odd, I(0x80000000u), I(0)));
    Value* result = b_.AsFloat(b_.CreateOr(b_.AsInt(power), sign));
    Value* negative = b_.CreateAnd(b_.CreateFCmpOLT(x, F(0)), b_.CreateFCmpONE(magnitude, F(kInf)));
    result = b_.CreateSelect(b_.CreateAnd(negative, b_.CreateNot(whole)), F(kNan), result);
    Value* one_or_minus_one = b_.CreateFCmpOEQ(magnitude, F(1));
    Value* infinite_y = b_.CreateFCmpOEQ(b_.Abs(y), F(kInf));
    Value* is_one = b_.CreateOr(b_.CreateFCmpOEQ(x, F(1)), b_.CreateFCmpOEQ(y, F(0)));
    return b_.CreateSelect(b_.CreateOr(is_one, b_.CreateAnd(one_or_minus_one, infinite_y)), F(1), result);
  }

 private:
  static constexpr double kInf = std::numeric_limits<double>::infinity();
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

  // A float's nearest integer.
  struct Integer {
    Value* value;  // float
    Value* bits;   // i32, with the integer in the low bits
  };
  // factor * x = n * ln 2 + r with |r| <= ln 2 / 2.
  struct Reduced {
    Value* scale;          // 2^n
    Value* exp_minus_one;  // e^r - 1
  };

  llvm::Type* Wide(llvm::Type* element) const { return WithLanes(element, lanes_); }
  llvm::Constant* F(double value) const { return llvm::ConstantFP::get(type_, value); }
  llvm::Constant* D(double value) const { return llvm::ConstantFP::get(Wide(b_.getDoubleTy()), value); }
  llvm::Constant* I(uint32_t value) const { return llvm::ConstantInt::get(int_type_, value); }

  // Coefficients from the constant up.
  Value* Polynomial(Value* x, llvm::ArrayRef<double> coefficients) const {
    Value* sum = Float(x, coefficients.back());
    for (const double c : llvm::reverse(coefficients.drop_back())) sum = b_.MulAdd(sum, x, Float(x, c));
    return sum;
  }

  // The integer nearest to x * y, |x * y| < 2^21.
  Integer Nearest(Value* x, Value* y, int added) const {
    Value* shifted = b_.MulAdd(x, y, F(kMagic + added));
    return {b_.CreateFSub(shifted, F(kMagic + added)), b_.AsInt(shifted)};
  }

  // REQUIRES: -80 < factor * x < 80. For such small n, n times the error of ln 2 as a float is negligible.
  Reduced ReduceExp(Value* x, int factor) const {
    const double f = factor;
    const Integer n = Nearest(x, F(f * kLog2E), kExponentBias);
    Value* r = b_.MulAdd(n.value, F(-kLn2 / f), x);
    Value* q = Polynomial(r, llvm::ArrayRef(ExpPolynomial(f)).drop_front(2));
    Value* linear = factor == 1 ? r : b_.CreateFMul(r, F(f));
    return {b_.AsFloat(b_.CreateShl(n.bits, 23)), b_.MulAdd(b_.CreateFMul(r, r), q, linear)};
  }

  // Results below the least normal number are 0, which the language allows: to round them would take fifty
  // times as long. Scaling by an infinite power of two gives infinity, even of a fraction that is NaN.
  Value* Exp2ByScaling(Value* x) const {
    const bool reduces = b_.features.avx512fp16;  // builds on AVX512DQ, which takes an infinity to 0
    Value* whole = reduces ? nullptr : b_.CreateUnaryIntrinsic(intrinsic::rint, x);
    Value* fraction = reduces ? FromNearest(x) : b_.CreateFSub(x, whole);
    if (reduces) whole = b_.CreateFSub(x, fraction);
    return Scale(Exp2OfFraction(fraction), whole, b_.CreateFCmpUGE(x, F(-126)));
  }
  Value* Exp2OfFraction(Value* x) const { return Polynomial(x, ExpPolynomial(kLn2)); }

  // x * 2^n, of an integer whose bits hold n and twice the bias. Without an instruction for it, the power of
  // two is applied as two factors, so that results close to infinity and subnormal ones are rounded once.
  Value* Scaled(Value* x, const Integer& n) const {
    if (b_.CanMask(lanes_)) return Scale(x, n.value);
    Value* half = b_.CreateLShr(n.bits, 1);
    Value* scaled = b_.CreateFMul(x, b_.AsFloat(b_.CreateShl(half, 23)));
    return b_.CreateFMul(scaled, b_.AsFloat(b_.CreateShl(b_.CreateSub(n.bits, half), 23)));
  }
  // x * 2^n, rounded once; 0 in lanes that are not `kept`. REQUIRES: CanMask.
  Value* Scale(Value* x, Value* n, Value* kept = nullptr) const {
    return b_.Masked("avx512.mask.scalef.ps", {x, n}, /*rounds=*/true, kept);
  }
  // x less its nearest integer. REQUIRES: CanMask, and AVX512DQ.
  Value* FromNearest(Value* x) const {
    constexpr int kToWhole = 0;
    return b_.Masked("avx512.mask.reduce.ps", {x, b_.getInt32(kToWhole)}, /*rounds=*/true);
  }

  // log2 of a float that is not negative, in double: 2^k * m, m in [2/3, 4/3), by the series of atanh((m - 1)
  // / (m + 1)).
  Value* Log2(Value* x) const {
    Value* wide = b_.CreateFPExt(x, Wide(b_.getDoubleTy()));
    Value* bits = b_.CreateBitCast(wide, Wide(b_.getInt64Ty()));
    Value* k = b_.CreateAShr(b_.CreateSub(bits, Int(bits, 0x3fe5555555555555)), 52);
    Value* m = b_.CreateBitCast(b_.CreateSub(bits, b_.CreateShl(k, 52)), wide->getType());
    Value* exponent = b_.CreateSIToFP(b_.CreateTrunc(k, int_type_), wide->getType());
    Value* s = b_.CreateFDiv(b_.CreateFSub(m, D(1)), b_.CreateFAdd(m, D(1)));
    Value* square = b_.CreateFMul(s, s);
    const double c = 2 * kLog2E;
    Value* series = Polynomial(square, {c, c / 3, c / 5, c / 7, c / 9, c / 11, c / 13, c / 15});
    Value* result = b_.MulAdd(s, series, exponent);
    result = b_.CreateSelect(b_.CreateFCmpOEQ(wide, D(0)), D(-kInf), result);
    return b_.CreateSelect(b_.CreateFCmpULT(wide, D(kInf)),
                           b_.CreateSelect(b_.CreateFCmpUNO(wide, wide), wide, result), wide);
  }

  // 2^z in double, infinite or zero as a float beyond +-200.
  Value* Exp2InDouble(Value* z) const {
    Value* clamped = b_.AtMost(z, 200);
    clamped = b_.CreateSelect(b_.CreateFCmpOLT(clamped, D(-200)), D(-200), clamped);
    Value* n = b_.CreateUnaryIntrinsic(intrinsic::rint, clamped);
    Value* f = b_.CreateFMul(b_.CreateFSub(clamped, n), D(kLn2));
    Value* p = Polynomial(
        f, {1, 1, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880});
    Value* k = b_.CreateIntrinsic(intrinsic::fptosi_sat, {int_type_, z->getType()}, {n});
    llvm::Type* bits_type = Wide(b_.getInt64Ty());
    Value* biased = b_.CreateAdd(b_.CreateSExt(k, bits_type), llvm::ConstantInt::get(bits_type, 1023));
    return b_.CreateFMul(p, b_.CreateBitCast(b_.CreateShl(biased, 52), z->getType()));
  }

  // Calls libm's function for lanes with |x| > limit, in a rarely taken branch.
  Value* LibmBeyond(double limit, Value* x, Value* result, llvm::StringRef function) const {
    Value* beyond = b_.CreateFCmpOGT(b_.Abs(x), F(limit));
    Value* any = lanes_ == 1 ? beyond : b_.CreateOrReduce(beyond);
    llvm::BasicBlock* fast = b_.GetInsertBlock();
    llvm::Function* parent = fast->getParent();
    llvm::BasicBlock* slow = llvm::BasicBlock::Create(b_.getContext(), "libm", parent);
    llvm::BasicBlock* done = llvm::BasicBlock::Create(b_.getContext(), "reduced", parent);
    b_.CreateCondBr(any, slow, done);
    b_.SetInsertPoint(slow);
    Value* exact = b_.CreateSelect(beyond, ByLane(b_, function, {x}), result);
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
    llvm::PHINode* merged = b_.CreatePHI(type_, 2);
    merged->addIncoming(result, fast);
    merged->addIncoming(exact, slow);
    return merged;
  }

  Builder& b_;
  const int lanes_;
  llvm::Type* const type_;
  llvm::Type* const int_type_;
};

}  // namespace

Value* Builder::Function(Op op, Value* x, Value* y) {
  if (x->getType()->getScalarType()->isDoubleTy())
    return ByLane(*this, OpName(op), y ? llvm::ArrayRef({x, y}) : llvm::ArrayRef(x));
  if (Value* result = FunctionByPieces(op, x)) return result;
  const FloatMath math(*this, x);
  switch (op) {
    case Op::kExp: return math.Exp(x);
    case Op::kExp2: return math.Exp2(x);
    case Op::kLog: return math.Log(x);
    case Op::kTanh: return math.Tanh(x);
    case Op::kErf: return math.Erf(x);
    case Op::kSin: return math.Sin(x, /*cosine=*/false);
    case Op::kCos: return math.Sin(x, /*cosine=*/true);
    case Op::kPow: return math.Pow(x, y);
    default: break;
  }
  MYCC_CHECK(false) << "no function " << OpName(op);
  return nullptr;
}

}  // namespace mycc
