// Padding as workloads write it: the elements inside, and boxes of them.
#include "codegen/schedule/padding.h"

#include <gtest/gtest.h>

namespace mycc {
namespace {

class Padding : public ::testing::Test {
 protected:
  Expr Less(const Expr& a, const Expr& b) { return MakeBinary(Op::kLt, a, b); }
  Expr AtMost(const Expr& a, const Expr& b) { return MakeBinary(Op::kLe, a, b); }
  Expr And(const Expr& a, const Expr& b) { return MakeBinary(Op::kAnd, a, b); }
  Expr OrZero(const Expr& condition) {
    return MakeSelect(condition, Load(x_, {VarRef(i_) - 1}), FloatConst(0, DType::kF32));
  }

  const Var i_ = MakeVar("i", 10), j_ = MakeVar("j", 4);
  const Buffer x_ = MakeBuffer("x", DType::kF32, {8});
  const Expr one_ = IntConst(1), nine_ = IntConst(9);
};

TEST_F(Padding, ElementsLieBetweenTheBoundsOfTheirAxis) {
  const Expr inside = And(AtMost(one_, VarRef(i_)), Less(VarRef(i_), nine_));
  const auto elements = ElementsAlong(OrZero(And(inside, Less(VarRef(j_), IntConst(3)))), i_);
  ASSERT_TRUE(elements.has_value());
  EXPECT_EQ(elements->min, 1);
  EXPECT_EQ(elements->max, 8);
  const auto of_step = ElementsAlong(OrZero(Less(IntConst(3), VarRef(i_) * 2)), i_);
  ASSERT_TRUE(of_step.has_value());
  EXPECT_EQ(of_step->min, 2);
  EXPECT_EQ(of_step->max, 9);
  const auto at_point = ElementsAlong(OrZero(MakeBinary(Op::kEq, VarRef(i_), IntConst(3))), i_);
  ASSERT_TRUE(at_point.has_value());
  EXPECT_EQ(at_point->min, 3);
  EXPECT_EQ(at_point->max, 3);
}

TEST_F(Padding, AValueWithoutBoundsOfTheAxisIsNotPadded) {
  EXPECT_FALSE(ElementsAlong(Load(x_, {VarRef(i_)}), i_).has_value());
  EXPECT_FALSE(ElementsAlong(OrZero(Less(VarRef(j_), IntConst(3))), i_).has_value());
  EXPECT_FALSE(ElementsAlong(OrZero(Less(VarRef(i_), IntConst(10))), i_).has_value()) << "all of it";
  EXPECT_FALSE(ElementsAlong(OrZero(Less(VarRef(i_), IntConst(0))), i_).has_value()) << "none of it";
  const Expr inside = Less(VarRef(i_), nine_);
  EXPECT_FALSE(
      ElementsAlong(MakeSelect(inside, Load(x_, {VarRef(i_)}), FloatConst(1, DType::kF32)), i_).has_value());
}

TEST_F(Padding, ABoxHasBoundsOnSingleAxes) {
  const Expr side = AtMost(one_, VarRef(i_)), other = Less(VarRef(j_), IntConst(3));
  EXPECT_TRUE(IsElementInBox(OrZero(side)));
  EXPECT_TRUE(IsElementInBox(OrZero(And(side, And(other, Less(VarRef(i_), nine_))))));
  EXPECT_FALSE(IsElementInBox(OrZero(Less(VarRef(i_), VarRef(j_)))));
  EXPECT_FALSE(IsElementInBox(OrZero(Less(VarRef(i_) * 2, nine_))));
  EXPECT_FALSE(IsElementInBox(OrZero(MakeBinary(Op::kOr, side, other))));
  EXPECT_FALSE(IsElementInBox(Load(x_, {VarRef(i_)})));
  const Expr doubled = Load(x_, {VarRef(i_) - 1}) * FloatConst(2, DType::kF32);
  EXPECT_FALSE(IsElementInBox(MakeSelect(side, doubled, FloatConst(0, DType::kF32))));
}

}  // namespace
}  // namespace mycc
