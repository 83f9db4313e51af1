// Proofs that an index stays in range under conditions.
#include "codegen/ir/guards.h"

#include <gtest/gtest.h>

#include <random>

namespace mycc {
namespace {

const Var kI = MakeVar("i", 8), kJ = MakeVar("j", 4);
const Expr kAtI = VarRef(kI), kAtJ = VarRef(kJ);

TEST(GuardsTest, WithoutGuardsRangesDecide) {
  const Guards guards;
  EXPECT_TRUE(guards.ProvablyInside(kAtI, 8));
  EXPECT_FALSE(guards.ProvablyInside(kAtI, 7));
  EXPECT_TRUE(guards.ProvablyEscapes(kAtI, 7));
  EXPECT_FALSE(guards.ProvablyEscapes(kAtI, 8));
  EXPECT_TRUE(guards.ProvablyEscapes(kAtI * 2 + kAtJ, 17));
  EXPECT_FALSE(guards.ProvablyEscapes(kAtI * 2 + kAtJ, 18));
  EXPECT_TRUE(guards.ProvablyEscapes(Mod(kAtI, 4) + FloorDiv(kAtJ, 2), 4));
}

TEST(GuardsTest, CorrelatedTermsAreLeftOpen) {
  const Guards guards;
  const Expr index = FloorDiv(kAtI, 2) - Mod(kAtI, 2);  // never reaches its range's ends both
  EXPECT_FALSE(guards.ProvablyInside(index, 3));
  EXPECT_FALSE(guards.ProvablyEscapes(index, 3));
}

TEST(GuardsTest, GuardsHoldUntilTheyAreRestored) {
  Guards guards;
  const size_t mark = guards.Mark();
  guards.Assume(MakeBinary(Op::kLt, kAtI, IntConst(7)), true);
  EXPECT_TRUE(guards.ProvablyInside(kAtI, 7));
  EXPECT_FALSE(guards.ProvablyEscapes(kAtI, 6));  // mentioned: not decided
  EXPECT_TRUE(guards.Mentions(kI.get()));
  EXPECT_FALSE(guards.Mentions(kJ.get()));
  guards.Restore(mark);
  EXPECT_FALSE(guards.ProvablyInside(kAtI, 7));
}

TEST(GuardsTest, WhatIsAtLeastZeroNeedsNoUpperBound) {
  Guards guards;
  EXPECT_TRUE(guards.ProvablyAtLeastZero(kAtI * 2 + 1));
  EXPECT_FALSE(guards.ProvablyAtLeastZero(kAtI - 3));
  guards.Assume(MakeBinary(Op::kLt, IntConst(2), kAtI), true);
  EXPECT_TRUE(guards.ProvablyAtLeastZero(kAtI - 3));
  EXPECT_FALSE(guards.ProvablyAtLeastZero(kAtI - 4));
}

TEST(GuardsTest, NegationsAndConnectivesAreTakenApart) {
  const Expr low = MakeBinary(Op::kLt, kAtI, IntConst(2)), high = MakeBinary(Op::kLe, IntConst(6), kAtI);
  Guards guards;
  guards.Assume(MakeBinary(Op::kOr, low, high), false);
  EXPECT_TRUE(guards.ProvablyInside(kAtI - 2, 4));
  Guards negated;
  negated.Assume(MakeUnary(Op::kNot, MakeBinary(Op::kAnd, low, high)), false);
  EXPECT_TRUE(negated.ProvablyInside(kAtI, 2));
  Guards equal;
  equal.Assume(MakeBinary(Op::kEq, kAtI, IntConst(3)), true);
  EXPECT_TRUE(equal.ProvablyInside(kAtI - 3, 1));
  Guards either;
  either.Assume(MakeBinary(Op::kOr, low, high), true);  // one of two: neither is known
  EXPECT_FALSE(either.ProvablyInside(kAtI, 2));
  EXPECT_TRUE(either.Mentions(kI.get()));
}

// All values of i and j confirm each proof.
TEST(GuardsTest, RandomProofsHold) {
  std::mt19937 random(7);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  const auto linear = [&](int64_t* a, int64_t* b, int64_t* c) {
    *a = pick(-2, 3), *b = pick(-2, 3), *c = pick(-4, 4);
    return kAtI * *a + kAtJ * *b + *c;
  };
  int inside = 0, escapes = 0;
  for (int round = 0; round < 5000; ++round) {
    int64_t a, b, c, ga, gb, gc;
    const Expr index = linear(&a, &b, &c), guarded = linear(&ga, &gb, &gc);
    const int64_t extent = pick(1, 20), bound = pick(-3, 20);
    const bool value = pick(0, 1), with_guard = pick(0, 1);
    Guards guards;
    if (with_guard) guards.Assume(MakeBinary(Op::kLt, guarded, IntConst(bound)), value);
    bool leaves = false;
    for (int64_t i = 0; i < kI->extent; ++i) {
      for (int64_t j = 0; j < kJ->extent; ++j) {
        if (with_guard && (ga * i + gb * j + gc < bound) != value) continue;
        const int64_t at = a * i + b * j + c;
        leaves |= at < 0 || at >= extent;
      }
    }
    if (guards.ProvablyInside(index, extent)) {
      ++inside;
      EXPECT_FALSE(leaves);
    }
    if (with_guard) continue;  // a guard that never holds would make any claim true
    EXPECT_EQ(guards.ProvablyEscapes(index, extent), leaves);
    EXPECT_EQ(guards.ProvablyInside(index, extent), !leaves);
    escapes += leaves;
  }
  EXPECT_GT(inside, 100);
  EXPECT_GT(escapes, 100);
}

}  // namespace
}  // namespace mycc
