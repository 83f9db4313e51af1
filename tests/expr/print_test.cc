// The printed form of expressions.
#include "codegen/expr/print.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

namespace mycc {
namespace {

class PrintTest : public testing::Test {
 protected:
  const Var i_ = MakeVar("i", 8);
  const Var j_ = MakeVar("j", 8);
  const Expr i = VarRef(i_), j = VarRef(j_);
  const Buffer x_ = MakeBuffer("x", DType::kF32, {8, 8});
  const Expr x = Load(x_, {i, j - 1});
  const Expr half = FloatConst(0.5, DType::kF32);
};

TEST_F(PrintTest, ParenthesesStandWhereTheGroupingNeedsThem) {
  EXPECT_EQ(PrintExpr(x + half * x), "x[i,j-1] + 0.5 * x[i,j-1]");
  EXPECT_EQ(PrintExpr((x + half) * x), "(x[i,j-1] + 0.5) * x[i,j-1]");
  EXPECT_EQ(PrintExpr(x - (half - x)), "x[i,j-1] - (0.5 - x[i,j-1])");
  EXPECT_EQ(PrintExpr(x - half - x), "x[i,j-1] - 0.5 - x[i,j-1]");
  EXPECT_EQ(PrintExpr(MakeUnary(Op::kNeg, x + half)), "-(x[i,j-1] + 0.5)");
  EXPECT_EQ(PrintExpr(MakeUnary(Op::kNeg, MakeUnary(Op::kNeg, x))), "--x[i,j-1]");
}

TEST_F(PrintTest, ComparisonsAndLogic) {
  const Expr low = MakeBinary(Op::kLe, IntConst(1), i), high = MakeBinary(Op::kLt, j, IntConst(7));
  EXPECT_EQ(PrintExpr(MakeBinary(Op::kAnd, low, high)), "1 <= i && j < 7");
  EXPECT_EQ(PrintExpr(MakeBinary(Op::kAnd, MakeBinary(Op::kOr, low, high), low)),
            "(1 <= i || j < 7) && 1 <= i");
  EXPECT_EQ(PrintExpr(MakeUnary(Op::kNot, low)), "!(1 <= i)");
  EXPECT_EQ(PrintExpr(MakeBinary(Op::kEq, low, high)), "(1 <= i) == (j < 7)");
  EXPECT_EQ(PrintExpr(MakeSelect(low, x, half)), "select(1 <= i, x[i,j-1], 0.5)");
}

TEST_F(PrintTest, IndicesAreCompact) {
  EXPECT_EQ(PrintExpr(Load(x_, {FloorDiv(i * 2 + j, 3), Mod(j + 1, 8)})), "x[(i*2+j)//3,(j+1)%8]");
  EXPECT_EQ(PrintExpr(FloorDiv(i * 2 + j, 3)), "(i * 2 + j) // 3");
}

TEST_F(PrintTest, ClampIsRecognisedByItsShape) {
  const Expr low = MakeBinary(Op::kMax, x, FloatConst(0, DType::kF32));
  EXPECT_EQ(PrintExpr(MakeBinary(Op::kMin, low, FloatConst(6, DType::kF32))), "clamp(x[i,j-1], 0.0, 6.0)");
  EXPECT_EQ(PrintExpr(MakeBinary(Op::kMin, low, x)), "min(max(x[i,j-1], 0.0), x[i,j-1])");
}

TEST_F(PrintTest, LiteralsSpellOutTypesButTheDefaults) {
  EXPECT_EQ(PrintLiteral(DType::kF32, {1, 0}), "1.0");
  EXPECT_EQ(PrintLiteral(DType::kI64, {0, -3}), "-3");
  EXPECT_EQ(PrintLiteral(DType::kBool, {0, 1}), "true");
  EXPECT_EQ(PrintLiteral(DType::kF16, {0.5, 0}), "f16(0.5)");
  EXPECT_EQ(PrintLiteral(DType::kF64, {-1e300, 0}), "f64(-1e+300)");
  EXPECT_EQ(PrintLiteral(DType::kU8, {0, 255}), "u8(255)");
  EXPECT_EQ(PrintLiteral(DType::kI16, {0, -32768}), "i16(-32768)");
  EXPECT_EQ(PrintLiteral(DType::kU64, {0, -1}), "u64(18446744073709551615)");
  EXPECT_EQ(PrintLiteral(DType::kF32, {-std::numeric_limits<double>::infinity(), 0}), "-inf");
  EXPECT_EQ(PrintLiteral(DType::kF16, {std::nan(""), 0}), "f16(nan)");
  EXPECT_EQ(PrintLiteral(DType::kF32, {-0.0, 0}), "-0.0");
}

TEST_F(PrintTest, ALiteralIsToldApartFromAnOperationOnOne) {
  const Expr one = FloatConst(1, DType::kF32), minus_one = FloatConst(-1, DType::kF32);
  EXPECT_EQ(PrintExpr(minus_one), "-1.0");
  EXPECT_EQ(PrintExpr(MakeUnary(Op::kNeg, one)), "-(1.0)");
  EXPECT_EQ(PrintExpr(MakeUnary(Op::kNeg, minus_one)), "--1.0");
  EXPECT_EQ(PrintExpr(FloatConst(0.5, DType::kF16)), "f16(0.5)");
  EXPECT_EQ(PrintExpr(MakeCast(DType::kF16, half)), "f16(f32(0.5))");
  EXPECT_EQ(PrintExpr(MakeCast(DType::kF32, i)), "f32(i)");
}

TEST_F(PrintTest, FloatsHaveTheFewestDigitsThatReadBack) {
  EXPECT_EQ(PrintLiteral(DType::kF32, {static_cast<float>(0.1), 0}), "0.1");
  EXPECT_EQ(PrintLiteral(DType::kF64, {0.1, 0}), "f64(0.1)");
  EXPECT_EQ(PrintLiteral(DType::kBF16, {RoundFloat(DType::kBF16, 3.14159), 0}), "bf16(3.14)");
  for (const char* text : {"0.0", "-40.0", "10000.0", "999999.0", "1e+06", "2.5e-06", "0.001"})
    EXPECT_EQ(PrintLiteral(DType::kF32, {RoundFloat(DType::kF32, std::strtod(text, nullptr)), 0}), text);
  EXPECT_EQ(PrintLiteral(DType::kF16, {65504, 0}), "f16(65504.0)");
  std::mt19937_64 random(1);
  for (int k = 0; k < 5000; ++k) {
    const double value =
        std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 120) - 110);
    for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
      const double rounded = RoundFloat(dtype, value);
      if (!std::isfinite(rounded)) continue;
      std::string text = PrintLiteral(dtype, {rounded, 0});
      if (const size_t open = text.find('('); open != std::string::npos) text = text.substr(open + 1);
      EXPECT_EQ(RoundFloat(dtype, std::strtod(text.c_str(), nullptr)), rounded) << text;
    }
  }
}

TEST_F(PrintTest, NamesCanBeReplaced) {
  PrintNames names;
  names.var = [](const VarNode& var) { return var.name + "0"; };
  names.buffer = [](const BufferNode&) { return std::string("t0"); };
  EXPECT_EQ(PrintExpr(x, names), "t0[i0,j0-1]");
}

}  // namespace
}  // namespace mycc
