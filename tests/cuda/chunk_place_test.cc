// Places of chunks against the conditions and indices that they stand for, over all values of their
// variables.
#include "codegen/cuda/chunk_place.h"

#include <gtest/gtest.h>

#include <map>

#include "codegen/expr/affine.h"
#include "codegen/expr/conjunction.h"
#include "codegen/expr/eval.h"
#include "codegen/expr/print.h"

namespace mycc {
namespace {

struct Values : EvalContext {
  int64_t VarValue(const VarNode& var) const override { return of.at(&var); }
  Scalar LoadElement(const BufferNode&, const std::vector<int64_t>&) const override { return Scalar{.i = 1}; }
  std::map<const VarNode*, int64_t> of;
};

Expr Less(const Expr& a, const Expr& b) { return MakeBinary(Op::kLt, a, b); }
Expr And(const Expr& a, const Expr& b) { return MakeBinary(Op::kAnd, a, b); }

// A tile of 16 rows and 3 terms: row = thread / 2 + 4 * step, where the thread has 4 of the rows.
class ChunkPlaceTest : public testing::Test {
 protected:
  ChunkPlaceTest() { place.sums[row.get()] = VarRef(thread) + VarRef(step) * 4; }

  void ExpectSame(const Expr& condition, const Expr& of_chunk) {
    for (int64_t number = 0; number < 3 * 4 * 4 * 3; ++number) {
      Values values;
      values.of = {{block.get(), number / 48},
                   {thread.get(), number / 12 % 4},
                   {step.get(), number / 3 % 4},
                   {term.get(), number % 3}};
      values.of[row.get()] = values.of[thread.get()] + values.of[step.get()] * 4;
      EXPECT_EQ(Evaluate(condition, values).i, Evaluate(of_chunk, values).i) << PrintExpr(condition) << "\n"
                                                                             << PrintExpr(of_chunk);
    }
  }

  Var block = MakeVar("block", 3), row = MakeVar("row", 16), thread = MakeVar("thread", 4),
      step = MakeVar("step", 4), term = MakeVar("term", 3);
  ChunkPlace place{.of_thread = {thread, term}, .of_step = {step}, .sums = {}};
};

TEST_F(ChunkPlaceTest, TheStepIsATermOfItsOwn) {
  const std::vector<Expr> indices = place.Indices({VarRef(block) * 16 + VarRef(row) * 5 + VarRef(term)});
  EXPECT_EQ(ToLinear(indices[0]).CoefficientOf(step.get()), 20);
  EXPECT_EQ(ToLinear(indices[0]).CoefficientOf(thread.get()), 5);
}

TEST_F(ChunkPlaceTest, EachStepComparesAConstantWithOneNumber) {
  const Expr rows = Less(VarRef(block) * 16 + VarRef(row), IntConst(37)),
             terms = Less(VarRef(block) + VarRef(term), IntConst(4));
  const Expr condition = And(rows, terms), of_chunk = place.Condition(condition);
  ExpectSame(condition, of_chunk);
  ASSERT_EQ(of_chunk->op, Op::kLt);
  EXPECT_EQ(ToLinear(of_chunk->args[0]).CoefficientOf(step.get()), 4);
  EXPECT_FALSE(UsesVar(of_chunk->args[1], step.get()));
}

TEST_F(ChunkPlaceTest, WithoutAnotherPartNothingIsChosen) {
  const Expr condition = Less(VarRef(row), IntConst(13)), of_chunk = place.Condition(condition);
  ExpectSame(condition, of_chunk);
  ASSERT_EQ(of_chunk->op, Op::kLt);
  EXPECT_FALSE(AnyExpr(of_chunk, [](const ExprNode& e) { return e.op == Op::kSelect; }));
}

TEST_F(ChunkPlaceTest, ConditionsOfOtherFormsKeepTheirValue) {
  const Expr even = Less(Mod(VarRef(row), 6), IntConst(4)), rows = Less(VarRef(row), VarRef(block) * 7),
             beyond = Less(IntConst(1), VarRef(row)), terms = Less(VarRef(term), VarRef(block));
  for (const Expr& condition : {And(even, rows), And(rows, beyond), And(beyond, And(rows, terms)),
                                And(terms, even), MakeBinary(Op::kLe, VarRef(row), VarRef(block) * 5)})
    ExpectSame(condition, place.Condition(condition));
}

TEST_F(ChunkPlaceTest, ConditionsOfNoStepStayTogether) {
  const Expr condition = And(Less(VarRef(term), IntConst(2)), Less(VarRef(block), IntConst(2)));
  ExpectSame(condition, place.Condition(condition));
  EXPECT_EQ(SplitConjunction(place.Condition(condition)).size(), 2u);
}

// The load stays second: the first comparison keeps its index inside of the buffer.
TEST_F(ChunkPlaceTest, ALoadStaysBehindItsGuard) {
  const Buffer lengths = MakeBuffer("lengths", DType::kI64, {10});
  const Expr guard = Less(VarRef(row), IntConst(10)),
             loaded = Less(Load(lengths, {VarRef(row)}), VarRef(term));
  const std::vector<Expr> parts = SplitConjunction(place.Condition(And(guard, loaded)));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_FALSE(HasLoad(parts[0]));
  EXPECT_TRUE(HasLoad(parts[1]));
  EXPECT_TRUE(UsesVar(parts[1], step.get()));
}

}  // namespace
}  // namespace mycc
