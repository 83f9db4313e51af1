// Simplification of index expressions, on examples and on random expressions.
#include "codegen/expr/affine.h"

#include <random>

#include "codegen/expr/eval.h"
#include "codegen/expr/print.h"
#include "codegen/expr/product.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

std::string Simplified(const Expr& e) { return PrintExpr(Simplify(e)); }

TEST(AffineTest, SplitIndicesDivideBack) {
  const Expr a = VarRef(MakeVar("a", 10)), b = VarRef(MakeVar("b", 8));
  EXPECT_EQ(Simplified(FloorDiv(a * 8 + b, 8)), "a");
  EXPECT_EQ(Simplified(Mod(a * 8 + b, 8)), "b");
  EXPECT_EQ(Simplified(FloorDiv(a * 8 + b, 4)), "a * 2 + b // 4");
}

TEST(AffineTest, FineTermsVanishUnderCoarserDivisors) {
  const Expr k0 = VarRef(MakeVar("k0", 16)), lane = VarRef(MakeVar("lane", 8));
  EXPECT_EQ(Simplified(FloorDiv(k0 * 8 + lane, 32)), "k0 // 4");
  EXPECT_EQ(Simplified(Mod(k0 * 8 + lane, 32)), "lane + k0 % 4 * 8");
}

TEST(AffineTest, FusedIndexFlattens) {
  const Expr f = VarRef(MakeVar("f", 49));
  EXPECT_EQ(Simplified(FloorDiv(f, 7) * 7 + Mod(f, 7)), "f");
  EXPECT_EQ(Simplified((FloorDiv(f, 7) * 7 + Mod(f, 7)) * 64), "f * 64");
}

TEST(AffineTest, ClampBoundsALoadedIndex) {
  const Buffer idx = MakeBuffer("idx", DType::kI64, {4});
  const Expr load = Load(idx, {IntConst(0)});
  EXPECT_FALSE(RangeOf(load).has_value());
  const Expr clamp = MakeBinary(Op::kMin, MakeBinary(Op::kMax, load, IntConst(0)), IntConst(999));
  ASSERT_TRUE(RangeOf(clamp).has_value());
  EXPECT_EQ(RangeOf(clamp)->min, 0);
  EXPECT_EQ(RangeOf(clamp)->max, 999);
}

// A value from memory with a bound on one side may wrap in a sum or a multiple, so that these have none.
TEST(AffineTest, SumsOfValuesThatAreBoundedOnOneSide) {
  const Buffer data = MakeBuffer("data", DType::kI64, {8});
  const Expr at_least_0 = MakeBinary(Op::kMax, Load(data, {IntConst(3)}), IntConst(0));
  for (const Expr& sum : {at_least_0 * 4, at_least_0 + 1, at_least_0 - 1})
    EXPECT_FALSE(RangeOf(MakeBinary(Op::kMin, sum, IntConst(10))).has_value()) << PrintExpr(sum);
  const std::optional<Interval> range = RangeOf(MakeBinary(Op::kMin, at_least_0, IntConst(10)));
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->min, 0);
  EXPECT_EQ(range->max, 10);
}

TEST(AffineTest, TheLeastIntegerIsComparedWithoutOverflow) {
  const Expr data = Load(MakeBuffer("data", DType::kI64, {8}), {IntConst(3)});
  const Expr least = IntConst(std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(
      StructurallyEqual(Simplify(MakeBinary(Op::kMax, least, data)), MakeBinary(Op::kMax, least, data)));
}

class Values : public EvalContext {
 public:
  std::unordered_map<const VarNode*, int64_t> vars;
  int64_t VarValue(const VarNode& var) const override { return vars.at(&var); }
  Scalar LoadElement(const BufferNode&, const std::vector<int64_t>&) const override { return {}; }
};

// Random quasi-affine expressions keep their value under Simplify, stay in their range, and comparisons are
// decided rightly.
TEST(AffineTest, RandomExpressionsKeepTheirMeaning) {
  std::mt19937 rng(7);
  const auto pick = [&](int n) { return static_cast<int>(rng() % n); };
  for (int round = 0; round < 3000; ++round) {
    std::vector<Var> vars;
    for (int i = 0; i < 3; ++i) vars.push_back(MakeVar("v" + std::to_string(i), 1 + pick(12)));
    const std::function<Expr(int)> build = [&](int depth) -> Expr {
      if (depth == 0 || pick(6) == 0) return pick(4) ? VarRef(vars[pick(3)]) : IntConst(pick(21) - 10);
      switch (pick(6)) {
        case 0:
        case 1: return build(depth - 1) + build(depth - 1);
        case 2: return build(depth - 1) - build(depth - 1);
        case 3: return build(depth - 1) * (pick(9) - 2);
        case 4: return FloorDiv(build(depth - 1), 1 + pick(12));
        default: return Mod(build(depth - 1), 1 + pick(12));
      }
    };
    const Expr e = build(5);
    const Expr simple = Simplify(e);
    const Expr less = MakeBinary(Op::kLt, e, build(2));
    const Expr decided = Simplify(less);
    const auto range = RangeOf(e);
    const int64_t divisor = DivisorOf(e);
    for (int sample = 0; sample < 20; ++sample) {
      Values values;
      for (const Var& v : vars) values.vars[v.get()] = pick(static_cast<int>(v->extent));
      const int64_t expected = Evaluate(e, values).i;
      ASSERT_EQ(Evaluate(simple, values).i, expected) << PrintExpr(e) << " -> " << PrintExpr(simple);
      ASSERT_TRUE(divisor == 0 ? expected == 0 : expected % divisor == 0) << divisor << ": " << PrintExpr(e);
      ASSERT_EQ(Evaluate(decided, values).i, Evaluate(less, values).i) << PrintExpr(less);
      if (range) {
        ASSERT_LE(range->min, expected) << PrintExpr(e);
        ASSERT_GE(range->max, expected) << PrintExpr(e);
      }
    }
  }
}

// A fact is at least 0 exactly where the comparison has its truth value.
TEST(FactsOfTest, AgreeWithTheComparison) {
  const Var i = MakeVar("i", 8);
  for (const Op op : {Op::kLt, Op::kLe, Op::kEq, Op::kNe}) {
    for (const bool holds : {true, false}) {
      const Expr comparison = MakeBinary(op, VarRef(i) * 3 - 2, VarRef(i) + 6);
      const std::vector<Linear> facts = FactsOf(comparison, holds);
      const bool either = (op == Op::kEq && !holds) || (op == Op::kNe && holds);
      ASSERT_EQ(facts.empty(), either);
      for (int64_t at = 0; at < 8 && !either; ++at) {
        const VarMap here = {{i.get(), IntConst(at)}};
        const auto value = [&](const Expr& e) { return Simplify(Substitute(e, here)); };
        bool all = true;
        for (const Linear& fact : facts) all &= value(FromLinear(fact))->value.i >= 0;
        EXPECT_EQ(all, IsConstInt(value(comparison), holds ? 1 : 0)) << at;
      }
    }
  }
  EXPECT_TRUE(FactsOf(VarRef(i), true).empty());
  EXPECT_TRUE(
      FactsOf(MakeBinary(Op::kLt, FloatConst(0, DType::kF32), FloatConst(1, DType::kF32)), true).empty());
}

// Sums of products, and the elements that are their factors.
TEST(ProductTest, FactorsAreElementsAsInstructionsReadThem) {
  const Buffer x = MakeBuffer("x", DType::kF32, {8}), h = MakeBuffer("h", DType::kF16, {8});
  const Expr element = Load(x, {IntConst(3)}), half = Load(h, {IntConst(3)});
  EXPECT_EQ(LoadOfFactor(element), element.get());
  EXPECT_EQ(LoadOfFactor(MakeCast(DType::kF32, half)), half.get());
  EXPECT_EQ(LoadOfFactor(MakeUnary(Op::kTF32, element)), element.get());
  EXPECT_EQ(LoadOfFactor(element + element), nullptr);
  EXPECT_EQ(LoadOfFactor(MakeUnary(Op::kTF32, element + element)), nullptr);
  struct {
    ReduceOp reduce;
    Expr value;
  } of = {ReduceOp::kSum, element * element};
  EXPECT_TRUE(SumsProducts(of));
  of.value = element + element;
  EXPECT_FALSE(SumsProducts(of));
  of = {ReduceOp::kMax, element * element};
  EXPECT_FALSE(SumsProducts(of));
}

}  // namespace
}  // namespace mycc
