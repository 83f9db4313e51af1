// Axes and dimensions of sums of products.
#include "codegen/expr/product.h"

#include <gtest/gtest.h>

namespace mycc {
namespace {

TEST(Product, AFactorIsALoadAsItIsOrThroughAConversion) {
  const Expr load = Load(MakeBuffer("x", DType::kBF16, {4}), {IntConst(1)});
  EXPECT_EQ(LoadOfFactor(load), load.get());
  EXPECT_EQ(LoadOfFactor(MakeCast(DType::kF32, load)), load.get());
  EXPECT_EQ(LoadOfFactor(MakeUnary(Op::kTF32, Load(MakeBuffer("y", DType::kF32, {}), {})))->buffer->name,
            "y");
  EXPECT_EQ(LoadOfFactor(load + load), nullptr);
  EXPECT_EQ(LoadOfFactor(MakeCast(DType::kF32, load + load)), nullptr);
}

TEST(Product, APlainDimensionHasTheVariableAlone) {
  const Var i = MakeVar("i", 4), j = MakeVar("j", 5);
  const Buffer x = MakeBuffer("x", DType::kF32, {8, 5, 6});
  const Expr load = Load(x, {VarRef(i), VarRef(j), IntConst(2)});
  EXPECT_EQ(PlainDim(load, i), 0);
  EXPECT_EQ(PlainDim(load, j), 1);
  EXPECT_EQ(WholeDim(*load, i), -1) << "4 of 8";
  EXPECT_EQ(WholeDim(*load, j), 1);
  EXPECT_EQ(PlainDim(load, MakeVar("k", 4)), -1);
  EXPECT_EQ(PlainDim(Load(x, {VarRef(i), VarRef(i), IntConst(0)}), i), -1) << "two dimensions";
  EXPECT_EQ(PlainDim(Load(x, {VarRef(i) + 1, IntConst(0), IntConst(0)}), i), -1) << "a larger expression";
}

TEST(Product, AnAxisHasAPlaceAndAxesHavePoints) {
  const Var i = MakeVar("i", 4), j = MakeVar("j", 5), k = MakeVar("k", 0);
  EXPECT_EQ(PlaceOf(VarRef(j), {i, j}), 1);
  EXPECT_EQ(PlaceOf(VarRef(k), {i, j}), -1);
  EXPECT_EQ(PlaceOf(VarRef(i) + 1, {i, j}), -1);
  EXPECT_EQ(PlaceOf(IntConst(0), {}), -1);
  EXPECT_EQ(PointsOf({i, j}), 20);
  EXPECT_EQ(PointsOf({}), 1);
  EXPECT_EQ(PointsOf({i, k}), 0);
  EXPECT_EQ(PointsOf({i, j, k}, {1}), 5);
}

}  // namespace
}  // namespace mycc
