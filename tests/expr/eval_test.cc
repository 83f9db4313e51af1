// The reference semantics of scalar expressions.
#include "codegen/expr/eval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace mycc {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

double Float(Op op, double a, double b = 0, DType dtype = DType::kF32) {
  const Scalar args[] = {{a, 0}, {b, 0}};
  return EvaluateOp(op, dtype, dtype, args).f;
}

int64_t Int(Op op, int64_t a, int64_t b = 0, DType dtype = DType::kI32) {
  const Scalar args[] = {{0, a}, {0, b}};
  return EvaluateOp(op, dtype, dtype, args).i;
}

TEST(Eval, FloatsRoundToTheirTypeAfterEveryOperation) {
  EXPECT_EQ(Float(Op::kAdd, 0x1p24, 1), 0x1p24);
  EXPECT_EQ(Float(Op::kAdd, 0x1p24, 1, DType::kF64), 0x1p24 + 1);
  EXPECT_EQ(Float(Op::kMul, 256, 257, DType::kBF16), 0x1p16);
  EXPECT_EQ(Float(Op::kAdd, 65504, 65504, DType::kF16), kInf);
  EXPECT_EQ(Float(Op::kDiv, 1, 3), static_cast<float>(1.0 / 3));
}

TEST(Eval, FunctionsMeanWhatTheirNamesSay) {
  EXPECT_EQ(Float(Op::kRound, 2.5), 2);
  EXPECT_EQ(Float(Op::kRound, 3.5), 4);
  EXPECT_EQ(Float(Op::kFloor, -1.5), -2);
  EXPECT_EQ(Float(Op::kCeil, -1.5), -1);
  EXPECT_EQ(Float(Op::kRsqrt, 4), 0.5);
  EXPECT_EQ(Float(Op::kAbs, -3), 3);
  EXPECT_EQ(Float(Op::kNeg, 3), -3);
  EXPECT_EQ(Float(Op::kPow, 2, 10), 1024);
  EXPECT_EQ(Float(Op::kExp, 1, 0, DType::kF64), std::exp(1.0));
  EXPECT_EQ(Float(Op::kErf, 0.5, 0, DType::kF64), std::erf(0.5));
  EXPECT_EQ(Float(Op::kTF32, 1.0 + 0x1p-12), 1.0);
  EXPECT_EQ(Float(Op::kLog, 0), -kInf);
  EXPECT_TRUE(std::isnan(Float(Op::kSqrt, -1)));
}

TEST(Eval, NaNPropagatesThroughMinAndMax) {
  for (Op op : {Op::kMin, Op::kMax}) {
    EXPECT_TRUE(std::isnan(Float(op, kNaN, 1)));
    EXPECT_TRUE(std::isnan(Float(op, 1, kNaN)));
    EXPECT_TRUE(std::isnan(Float(op, kInf, kNaN)));
  }
  EXPECT_EQ(Float(Op::kMin, -1, 2), -1);
  EXPECT_EQ(Float(Op::kMax, -1, 2), 2);
}

TEST(Eval, IntegerDivisionFloorsAndByZeroIsZero) {
  EXPECT_EQ(Int(Op::kFloorDiv, -7, 2), -4);
  EXPECT_EQ(Int(Op::kMod, -7, 2), 1);
  EXPECT_EQ(Int(Op::kFloorDiv, 7, -2), -4);
  EXPECT_EQ(Int(Op::kMod, 7, -2), -1);
  EXPECT_EQ(Int(Op::kFloorDiv, 7, 0), 0);
  EXPECT_EQ(Int(Op::kMod, 7, 0), 0);
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(Int(Op::kFloorDiv, kLowest, -1, DType::kI64), kLowest);
  EXPECT_EQ(Int(Op::kMod, kLowest, -1, DType::kI64), 0);
}

TEST(Eval, IntegersWrap) {
  EXPECT_EQ(Int(Op::kAdd, 127, 1, DType::kI8), -128);
  EXPECT_EQ(Int(Op::kAbs, -128, 0, DType::kI8), -128);
  EXPECT_EQ(Int(Op::kSub, 3, 5, DType::kU8), 254);
  EXPECT_EQ(Int(Op::kNeg, 1, 0, DType::kU8), 255);
  EXPECT_EQ(Int(Op::kMul, int64_t{1} << 62, 4, DType::kI64), 0);
  EXPECT_EQ(Int(Op::kAdd, std::numeric_limits<int64_t>::max(), 1, DType::kI64),
            std::numeric_limits<int64_t>::min());
}

TEST(Eval, TheUpperHalfOfU64IsNotNegative) {
  constexpr int64_t kMost = -1;  // 2^64 - 1
  EXPECT_EQ(Int(Op::kMax, kMost, 1, DType::kU64), kMost);
  EXPECT_EQ(Int(Op::kMin, kMost, 1, DType::kU64), 1);
  EXPECT_EQ(Int(Op::kFloorDiv, kMost, 2, DType::kU64), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Int(Op::kFloorDiv, 5, kMost, DType::kU64), 0);
  EXPECT_EQ(Int(Op::kFloorDiv, 5, 0, DType::kU64), 0);
  EXPECT_EQ(Int(Op::kMod, kMost, 10, DType::kU64), 5);
  EXPECT_EQ(Int(Op::kMod, 5, kMost, DType::kU64), 5);
  EXPECT_EQ(Int(Op::kMod, 5, 0, DType::kU64), 0);
  EXPECT_EQ(Int(Op::kAbs, kMost, 0, DType::kU64), kMost);
  EXPECT_EQ(Int(Op::kAdd, kMost, 2, DType::kU64), 1);
  const Scalar args[] = {{0, 1}, {0, kMost}};
  EXPECT_EQ(EvaluateOp(Op::kLt, DType::kBool, DType::kU64, args).i, 1);
  EXPECT_EQ(EvaluateOp(Op::kLt, DType::kBool, DType::kI64, args).i, 0);
}

TEST(Eval, ComparisonsAreOfTheOperandsType) {
  const Scalar args[] = {{1.5, 2}, {1.25, 3}};
  EXPECT_EQ(EvaluateOp(Op::kLt, DType::kBool, DType::kF32, args).i, 0);
  EXPECT_EQ(EvaluateOp(Op::kLt, DType::kBool, DType::kI32, args).i, 1);
  const Scalar nans[] = {{kNaN, 0}, {kNaN, 0}};
  EXPECT_EQ(EvaluateOp(Op::kEq, DType::kBool, DType::kF32, nans).i, 0);
  EXPECT_EQ(EvaluateOp(Op::kNe, DType::kBool, DType::kF32, nans).i, 1);
  EXPECT_EQ(EvaluateOp(Op::kLe, DType::kBool, DType::kF32, nans).i, 0);
}

TEST(Eval, ReductionsCombineInTheirType) {
  EXPECT_EQ(EvaluateReduce(ReduceOp::kSum, DType::kF32, {0x1p24, 0}, {1, 0}).f, 0x1p24);
  EXPECT_EQ(EvaluateReduce(ReduceOp::kSum, DType::kI8, {0, 127}, {0, 1}).i, -128);
  EXPECT_EQ(EvaluateReduce(ReduceOp::kProd, DType::kF64, {3, 0}, {4, 0}).f, 12);
  EXPECT_TRUE(std::isnan(EvaluateReduce(ReduceOp::kMax, DType::kF32, {kInf, 0}, {kNaN, 0}).f));
  EXPECT_EQ(EvaluateReduce(ReduceOp::kMin, DType::kU8, {0, 3}, {0, 200}).i, 3);
  EXPECT_EQ(EvaluateReduce(ReduceOp::kSum, DType::kU16, {0, 65535}, {0, 2}).i, 1);
  for (const DType dtype : {DType::kI16, DType::kU16, DType::kU32, DType::kU64}) {
    for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin})
      EXPECT_EQ(EvaluateReduce(op, dtype, ReduceIdentity(op, dtype)->value, {0, 7}).i, 7) << DTypeName(dtype);
  }
}

// x[i] = 10 * i, and a read outside 0..3 fails the test.
class LineContext : public EvalContext {
 public:
  explicit LineContext(int64_t i) : i_(i) {}
  int64_t VarValue(const VarNode&) const override { return i_; }
  Scalar LoadElement(const BufferNode& buffer, const std::vector<int64_t>& indices) const override {
    EXPECT_EQ(buffer.name, "x");
    EXPECT_TRUE(indices[0] >= 0 && indices[0] < 4) << indices[0];
    return {10.0 * static_cast<double>(indices[0]), 0};
  }

 private:
  int64_t i_;
};

TEST(Eval, TheArmNotTakenIsNotRead) {
  const Buffer x = MakeBuffer("x", DType::kF32, {4});
  const Var i = MakeVar("i", 8);
  const Expr inside = MakeBinary(Op::kLt, VarRef(i), IntConst(4));
  const Expr guarded = MakeSelect(inside, Load(x, {VarRef(i)}), FloatConst(-1, DType::kF32));
  EXPECT_EQ(Evaluate(guarded, LineContext(3)).f, 30);
  EXPECT_EQ(Evaluate(guarded, LineContext(7)).f, -1);
}

TEST(Eval, CastsAndIndexArithmetic) {
  const Var i = MakeVar("i", 8);
  const Expr value = MakeCast(DType::kF32, Mod(VarRef(i) * 3 + 1, 4));
  EXPECT_EQ(Evaluate(value, LineContext(5)).f, 0);
  EXPECT_EQ(Evaluate(value, LineContext(2)).f, 3);
}

}  // namespace
}  // namespace mycc
