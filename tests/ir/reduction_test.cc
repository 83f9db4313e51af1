// Functions of tuples: how they merge in any grouping, print, and break rules.
#include "codegen/ir/reduction.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "codegen/expr/eval.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

using testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

class NothingElse : public EvalContext {
  int64_t VarValue(const VarNode&) const override { return 0; }
  Scalar LoadElement(const BufferNode&, const std::vector<int64_t>&) const override { return {}; }
};

// The value of an expression of constants.
Scalar ValueOf(const Expr& expr) { return Evaluate(expr, NothingElse()); }

using Values = std::vector<Expr>;

Values Merged(const Reduction& reduction, const Values& a, const Values& b) {
  Values merged;
  for (int i = 0; i < reduction.arity(); ++i) {
    const Expr value = reduction.Combined(i, a, b);
    const Scalar scalar = ValueOf(value);
    merged.push_back(IsFloat(value->dtype) ? FloatConst(scalar.f, value->dtype)
                                           : IntConst(scalar.i, value->dtype));
  }
  return merged;
}

Values Identities(const Reduction& reduction) {
  Values values;
  for (int i = 0; i < reduction.arity(); ++i) values.push_back(reduction.Identity(i, DType::kF32));
  return values;
}

TEST(ReductionTest, ScalarsAreReducedByTheirOperation) {
  const Reduction sum = ReduceOp::kSum;
  EXPECT_EQ(sum.arity(), 1);
  EXPECT_TRUE(sum == ReduceOp::kSum);
  EXPECT_FALSE(sum == ReduceOp::kMax);
  EXPECT_EQ(sum.tuple(), nullptr);
  EXPECT_EQ(Merged(sum, {FloatConst(2, DType::kF32)}, {FloatConst(3, DType::kF32)})[0]->value.f, 5);
  EXPECT_EQ(PrintReduction(sum), "");
  EXPECT_TRUE(CheckReduction(sum).ok());
}

TEST(ReductionTest, ATupleIsNoScalarOperation) {
  const Reduction arg = ArgExtremum(ReduceOp::kArgMin, DType::kI32);
  for (const ReduceOp op : {ReduceOp::kNone, ReduceOp::kSum, ReduceOp::kArgMin}) EXPECT_FALSE(arg == op);
  EXPECT_EQ(arg.arity(), 2);
  EXPECT_TRUE(CheckReduction(arg).ok());
  EXPECT_EQ(PrintReduction(arg),
            "reduction argmin(at: i32 = i32(0), best: i32 = i32(2147483647)) of a and b\n"
            "  at = select(b.best[] < a.best[] || b.best[] == a.best[] && b.at[] < a.at[], b.at[], a.at[])\n"
            "  best = select(b.best[] < a.best[], b.best[], a.best[])\n");
}

TEST(ReductionTest, OrderFoldsTheQuestionOfWhichIsFirst) {
  EXPECT_EQ(PrintReduction(ArgExtremum(ReduceOp::kArgMin, DType::kI32).InOrder(0)),
            "reduction argmin(at: i32 = i32(0), best: i32 = i32(2147483647)) of a and b\n"
            "  at = select(b.best[] < a.best[], b.at[], a.at[])\n"
            "  best = select(b.best[] < a.best[], b.best[], a.best[])\n");
}

// The first of the best values is found, however the terms are grouped.
TEST(ReductionTest, ArgReductionsMergeInAnyGrouping) {
  std::mt19937 random(7);
  const double some[] = {0, 1, 2, kInf, -kInf, kNaN};
  for (const ReduceOp op : {ReduceOp::kArgMax, ReduceOp::kArgMin}) {
    const Reduction arg = ArgExtremum(op, DType::kF32);
    for (int round = 0; round < 200; ++round) {
      std::vector<Values> parts;
      std::vector<double> terms;
      for (int i = 0; i < 6; ++i) {
        terms.push_back(some[random() % 6]);
        parts.push_back(
            Merged(arg, Identities(arg), {IntConst(i, DType::kI32), FloatConst(terms.back(), DType::kF32)}));
      }
      int64_t best = 0;
      for (int i = 1; i < 6; ++i) {
        const bool better = op == ReduceOp::kArgMax ? terms[i] > terms[best] : terms[i] < terms[best];
        if (better || (std::isnan(terms[i]) && !std::isnan(terms[best]))) best = i;
      }
      while (parts.size() > 1) {
        const size_t a = random() % parts.size();
        size_t b = random() % (parts.size() - 1);
        if (b >= a) ++b;
        parts[a] = Merged(arg, parts[a], parts[b]);
        parts.erase(parts.begin() + static_cast<ptrdiff_t>(b));
      }
      EXPECT_EQ(parts[0][0]->value.i, best) << ReduceOpName(op) << " in round " << round;
    }
  }
}

TEST(ReductionTest, BrokenFunctionsAreRefusedInWords) {
  const TupleParams p({{"x", DType::kF32}, {"y", DType::kF32}});
  const Expr zero = FloatConst(0, DType::kF32);
  const auto broken = [&](const std::vector<Expr>& identities, const std::vector<Expr>& combined) {
    return std::string(CheckReduction(p.Function("f", identities, combined)).message());
  };
  EXPECT_EQ(broken({zero, zero}, {p.a[0] + p.a[1], p.b[1]}), "");
  EXPECT_THAT(
      broken({zero, zero}, {p.a[0], p.a[0] + p.b[1]}),
      HasSubstr("part 1 of the tuple reduction f reads a.x, an earlier part, which is stored before"));
  EXPECT_THAT(broken({zero, p.a[0]}, {p.a[0], p.a[1]}), HasSubstr("starts from no constant of its type"));
  EXPECT_THAT(broken({zero, zero}, {p.a[0], MakeCast(DType::kF64, p.a[1])}), HasSubstr("is combined to f64"));
  const Expr other = Load(MakeBuffer("z", DType::kF32, {}), {});
  EXPECT_THAT(broken({zero, zero}, {other, p.a[1]}), HasSubstr("reads z, no parameter"));
}

}  // namespace
}  // namespace mycc
