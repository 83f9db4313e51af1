// The part of a range in which a condition holds, against trying every value.
#include "codegen/expr/condition_range.h"

#include <gtest/gtest.h>

#include <random>

#include "codegen/expr/eval.h"
#include "codegen/expr/print.h"

namespace mycc {
namespace {

class TwoValues : public EvalContext {
 public:
  TwoValues(const Var& first, int64_t a, int64_t b) : first_(first), a_(a), b_(b) {}
  int64_t VarValue(const VarNode& var) const override { return &var == first_.get() ? a_ : b_; }
  Scalar LoadElement(const BufferNode&, const std::vector<int64_t>&) const override { return {}; }

 private:
  const Var& first_;
  const int64_t a_, b_;
};

// The condition holds for all values of `inner` in the part that is true, and for none outside the part that
// is possible. Returns the values of `var` for which it holds for all.
int64_t CheckRange(const ConditionRange& range, const Expr& condition, const Var& var, const Var& inner) {
  int64_t always = 0;
  for (int64_t v = 0; v < var->extent; ++v) {
    int64_t held = 0;
    for (int64_t w = 0; w < inner->extent; ++w) held += Evaluate(condition, TwoValues(var, v, w)).i;
    always += held == inner->extent;
    const std::string where = PrintExpr(condition) + " at " + std::to_string(v);
    if (v >= range.true_begin && v < range.true_end) {
      EXPECT_EQ(held, inner->extent) << where;
    }
    if (v < range.possible_begin || v >= range.possible_end) {
      EXPECT_EQ(held, 0) << where;
    }
  }
  return always;
}

TEST(ConditionRange, ComparisonsHoldWhereItSays) {
  std::mt19937 random(3);
  const auto pick = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  int decided = 0;
  for (int round = 0; round < 2000; ++round) {
    const Var var = MakeVar("v", pick(1, 12)), inner = MakeVar("w", pick(1, 5));
    const Expr sum = VarRef(var) * pick(-4, 4) + VarRef(inner) * pick(-3, 3);
    const Expr condition = MakeBinary(pick(0, 1) ? Op::kLt : Op::kLe, sum, IntConst(pick(-20, 20)));
    const auto range = RangeOfCondition(condition, var.get(), var->extent, {inner.get()});
    if (!range) continue;
    ++decided;
    const int64_t always = CheckRange(*range, condition, var, inner);
    EXPECT_EQ(always, range->true_end - range->true_begin) << PrintExpr(condition) << ": not all of it";
  }
  EXPECT_GT(decided, 1000);
}

TEST(ConditionRange, AnEqualityHoldsAtOnePoint) {
  const Var var = MakeVar("v", 8), inner = MakeVar("w", 3);
  const auto of = [&](const Expr& left, int64_t right) {
    return RangeOfCondition(MakeBinary(Op::kEq, left, IntConst(right)), var.get(), 8, {inner.get()});
  };
  const auto point = of(VarRef(var) * 2, 6);
  ASSERT_TRUE(point.has_value());
  EXPECT_EQ(point->true_begin, 3);
  EXPECT_EQ(point->true_end, 4);
  EXPECT_FALSE(of(VarRef(var) * 2, 5).has_value()) << "between two values";
  EXPECT_FALSE(of(VarRef(var), 8).has_value()) << "beyond the range";
  EXPECT_FALSE(of(VarRef(var) + VarRef(inner), 3).has_value()) << "no single point";
}

TEST(ConditionRange, OtherVariablesAndFormsAreUndecided) {
  const Var var = MakeVar("v", 8), inner = MakeVar("w", 3), outer = MakeVar("o", 4);
  const auto is_known = [&](const Expr& left) {
    return RangeOfCondition(MakeBinary(Op::kLt, left, IntConst(4)), var.get(), 8, {inner.get()}).has_value();
  };
  EXPECT_TRUE(is_known(VarRef(var) + VarRef(inner)));
  EXPECT_FALSE(is_known(VarRef(var) + VarRef(outer)));
  EXPECT_FALSE(is_known(VarRef(inner)));
  EXPECT_FALSE(is_known(FloorDiv(VarRef(var), 3)));
  EXPECT_FALSE(is_known(VarRef(var) * VarRef(var)));
}

}  // namespace
}  // namespace mycc
