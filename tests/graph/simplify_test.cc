// Each form that arithmetic is simplified to, and those that must stay.
#include <gmock/gmock.h>

#include <functional>
#include <limits>

#include "codegen/graph/passes/passes.h"
#include "tests/graph/graph_cases.h"

namespace mycc {
namespace {

struct Form {
  const char* name;
  DType dtype;
  std::function<Expr(const Expr& x)> value;
  const char* simpler;  // as the graph prints it
};

Expr Number(const Expr& x, double value) { return FloatConst(value, x->dtype); }

// How the graph prints the only stage's value, behind the pass.
std::string SimplerText(const Form& form) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", form.dtype, {16});
  b.AddOutput("y", b.Map({16}, [&](const Axes& a) { return form.value(Load(x, a)); }));
  EXPECT_TRUE(b.status().ok()) << b.status();
  const Graph before = b.Finish(), after = Simplify(before, Target());
  if (IsFloat(form.dtype)) {
    ExpectCloseResults(before, after, 1e-6);
  } else {
    ExpectSameResults(before, after);
  }
  const std::string text = PrintGraph(after);
  const size_t begin = text.rfind("]: ");
  const size_t value = text.find(" = ", begin) + 3;
  return text.substr(value, text.find('\n', value) - value);
}

void ExpectForms(const std::vector<Form>& forms) {
  for (const Form& form : forms) {
    SCOPED_TRACE(form.name);
    EXPECT_EQ(SimplerText(form), form.simpler);
  }
}

Expr Power(const Expr& x, double exponent) { return MakeBinary(Op::kPow, x, Number(x, exponent)); }
Expr Quotient(const Expr& x, double number) { return MakeBinary(Op::kDiv, x, Number(x, number)); }

TEST(SimplifyTest, NeutralNumbers) {
  const std::vector<Form> forms = {
      {"x * 1", DType::kF32, [](const Expr& x) { return x * Number(x, 1); }, "v0[a0]"},
      {"1 * x", DType::kF32, [](const Expr& x) { return Number(x, 1) * x; }, "v0[a0]"},
      {"x + 0", DType::kF32, [](const Expr& x) { return x + Number(x, 0); }, "v0[a0]"},
      {"0 + x", DType::kF32, [](const Expr& x) { return Number(x, 0) + x; }, "v0[a0]"},
      {"x - 0", DType::kF16, [](const Expr& x) { return x - Number(x, 0); }, "v0[a0]"},
      {"x / 1", DType::kF64, [](const Expr& x) { return Quotient(x, 1); }, "v0[a0]"},
      {"integers", DType::kI32, [](const Expr& x) { return x * IntConst(1, DType::kI32); }, "v0[a0]"},
      {"nested", DType::kF32, [](const Expr& x) { return (x * Number(x, 1) + Number(x, 0)) * Number(x, 1); },
       "v0[a0]"},
      {"x * 0 stays: x may be NaN", DType::kF32, [](const Expr& x) { return x * Number(x, 0); },
       "v0[a0] * 0.0"},
      {"0 - x", DType::kF32, [](const Expr& x) { return Number(x, 0) - x; }, "0.0 - v0[a0]"},
  };
  ExpectForms(forms);
}

// 49 * (1 / 49) is less than 1 in f32.
TEST(SimplifyTest, QuotientsThatAreRoundedStay) {
  const auto whole = [](const Expr& x) { return MakeUnary(Op::kFloor, Quotient(x, 49)); };
  ExpectForms({
      {"floor", DType::kF32, whole, "floor(v0[a0] / 49.0)"},
      {"round", DType::kF32, [](const Expr& x) { return MakeUnary(Op::kRound, Quotient(x, 0.1)); },
       "round(v0[a0] / 0.1)"},
      {"a quotient of a quotient", DType::kF32,
       [](const Expr& x) { return MakeUnary(Op::kFloor, Quotient(Quotient(x, 3) + Number(x, 1), 0.1)); },
       "floor((v0[a0] / 3.0 + 1.0) / 0.1)"},
      {"an integer", DType::kF32,
       [](const Expr& x) { return MakeCast(DType::kF32, MakeCast(DType::kI32, Quotient(x, 3))); },
       "f32(i32(v0[a0] / 3.0))"},
      {"exact", DType::kF32, [](const Expr& x) { return MakeUnary(Op::kCeil, Quotient(x, 8)); },
       "ceil(v0[a0] * 0.125)"},
  });
}

TEST(SimplifyTest, QuotientsThatALaterStageRoundsStay) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {16});
  const Buffer y = b.Map({16}, [&](const Axes& a) { return Quotient(Load(x, a), 49); });
  b.AddOutput("y", Unary(&b, Op::kFloor, b.AddReshape(y, {4, 4})));
  const Graph before = b.Finish();
  EXPECT_EQ(PrintGraph(Simplify(before, Target())), PrintGraph(before));
}

TEST(SimplifyTest, QuotientsByNumbers) {
  const std::vector<Form> forms = {
      {"a power of two", DType::kF32, [](const Expr& x) { return Quotient(x, 4); }, "v0[a0] * 0.25"},
      {"negative", DType::kF32, [](const Expr& x) { return Quotient(x, -0.5); }, "v0[a0] * -2.0"},
      {"f32", DType::kF32, [](const Expr& x) { return Quotient(x, 10); }, "v0[a0] * 0.1"},
      {"f16, a power of two", DType::kF16, [](const Expr& x) { return Quotient(x, 8); },
       "v0[a0] * f16(0.125)"},
      {"f16", DType::kF16, [](const Expr& x) { return Quotient(x, 10); }, "v0[a0] / f16(10.0)"},
      {"f64", DType::kF64, [](const Expr& x) { return Quotient(x, 10); }, "v0[a0] / f64(10.0)"},
      {"zero", DType::kF32, [](const Expr& x) { return Quotient(x, 0); }, "v0[a0] / 0.0"},
      {"of a number", DType::kF32, [](const Expr& x) { return MakeBinary(Op::kDiv, Number(x, 1), x); },
       "1.0 / v0[a0]"},
  };
  ExpectForms(forms);
}

TEST(SimplifyTest, QuotientsByNumbersWithoutANormalReciprocalStay) {
  const auto stays = [](DType dtype, double number) {
    const std::string text =
        SimplerText({"", dtype, [=](const Expr& x) { return Quotient(x, number); }, nullptr});
    EXPECT_EQ(text.rfind("v0[a0] / ", 0), 0) << text;
  };
  stays(DType::kF32, 0x1p127);  // its reciprocal is subnormal
  stays(DType::kF32, 1e-39);    // its reciprocal is infinite
  stays(DType::kF16, 0x1p15);
  stays(DType::kF16, 0x1p-20);
  stays(DType::kF32, std::numeric_limits<double>::infinity());
}

TEST(SimplifyTest, PowersAndRoots) {
  const std::vector<Form> forms = {
      {"1", DType::kF32, [](const Expr& x) { return Power(x, 1); }, "v0[a0]"},
      {"2", DType::kF32, [](const Expr& x) { return Power(x, 2); }, "v0[a0] * v0[a0]"},
      {"3", DType::kF32, [](const Expr& x) { return Power(x, 3); }, "v0[a0] * v0[a0] * v0[a0]"},
      {"-1", DType::kF32, [](const Expr& x) { return Power(x, -1); }, "1.0 / v0[a0]"},
      {"0.5 stays: -infinity", DType::kF32, [](const Expr& x) { return Power(x, 0.5); }, "pow(v0[a0], 0.5)"},
      {"a reciprocal root", DType::kF32,
       [](const Expr& x) { return MakeBinary(Op::kDiv, Number(x, 1), MakeUnary(Op::kSqrt, x)); },
       "rsqrt(v0[a0])"},
  };
  ExpectForms(forms);
}

TEST(SimplifyTest, NegationsAndSelects) {
  const auto twice = [](Op op) { return [=](const Expr& x) { return MakeUnary(op, MakeUnary(op, x)); }; };
  const auto select = [](double otherwise) {
    return [=](const Expr& x) {
      return MakeSelect(MakeBinary(Op::kLt, x, Number(x, 0)), x + Number(x, 2), x + Number(x, otherwise));
    };
  };
  const std::vector<Form> forms = {
      {"-(-x)", DType::kF32, twice(Op::kNeg), "v0[a0]"},
      {"abs(abs(x)) stays", DType::kF32, twice(Op::kAbs), "abs(abs(v0[a0]))"},
      {"!!x", DType::kBool, twice(Op::kNot), "v0[a0]"},
      {"equal arms", DType::kF32, select(2), "v0[a0] + 2.0"},
      {"other arms", DType::kF32, select(3), "select(v0[a0] < 0.0, v0[a0] + 2.0, v0[a0] + 3.0)"},
  };
  ExpectForms(forms);
}

Buffer Scaled(GraphBuilder* b, const Buffer& x, double factor) {
  return b->Map(x->shape, [&](const Axes& a) { return Load(x, a) * Number32(factor); });
}

Buffer MatrixProduct(GraphBuilder* b, const Buffer& x, const Buffer& y) {
  return b->Reduce(ReduceOp::kSum, {x->shape[0], y->shape[1]}, {y->shape[0]},
                   [&](const Axes& a, const Axes& r) {
                     return Load(x, {a[0], r[0]}) * Load(y, {r[0], a[1]});
                   });
}

TEST(MoveProductFactorsTest, FactorsOfBothOperandsMultiplyTheResult) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 6}), y = b.AddInput("y", DType::kF32, {12, 3});
  b.AddOutput("z", MatrixProduct(&b, Scaled(&b, x, 0.5), b.AddReshape(Scaled(&b, y, 0.25), {6, 6})));
  const Graph before = b.Finish();
  const Graph after = DropDeadNodes(RemoveCopies(MoveProductFactors(before, Target()), Target()), Target());
  ExpectCloseResults(before, after, 1e-6);
  EXPECT_EQ(CountStages(after), 2) << PrintGraph(after);
  EXPECT_THAT(PrintGraph(after), testing::HasSubstr(" * 0.125\n"));
}

TEST(MoveProductFactorsTest, OperandsThatOthersReadAndFarFactorsStay) {
  GraphBuilder b("g");
  const Buffer x = b.AddInput("x", DType::kF32, {4, 6}), y = b.AddInput("y", DType::kF32, {6, 3});
  const Buffer scaled = Scaled(&b, x, 0.5);
  b.AddOutput("scaled", scaled);
  b.AddOutput("z", MatrixProduct(&b, scaled, Scaled(&b, y, 1e20)));
  const Graph before = b.Finish();
  EXPECT_EQ(PrintGraph(MoveProductFactors(before, Target())), PrintGraph(before));
}

}  // namespace
}  // namespace mycc
