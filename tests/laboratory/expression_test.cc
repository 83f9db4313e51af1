// Python expressions of tuning spaces: their meaning, and refusals with a place.
#include "laboratory/expression.h"

#include <gtest/gtest.h>

namespace mycc {
namespace {

// The value of an expression over x = 7, y = -2, name = "float4", flag = True, as text; or the error.
std::string Value(const std::string& text) {
  const auto expression = Expression::Parse(text, {"x", "y", "name", "flag"});
  if (!expression.ok()) return std::string(expression.status().message());
  ExpressionEnvironment environment = {PythonValue::OfInt(7), PythonValue::OfInt(-2),
                                       PythonValue::OfText("float4"), PythonValue::OfBool(true)};
  environment.resize(std::max<size_t>(environment.size(), expression->num_slots()));
  const auto value = expression->Evaluate(&environment);
  return value.ok() ? std::string(KindName(*value)) + " " + ValueText(*value)
                    : std::string(value.status().message());
}

TEST(ExpressionTest, ArithmeticIsPythons) {
  EXPECT_EQ(Value("x // y"), "an integer -4");  // rounds down
  EXPECT_EQ(Value("-x // 2"), "an integer -4");
  EXPECT_EQ(Value("-x % 3"), "an integer 2");  // the divisor's sign
  EXPECT_EQ(Value("x % -3"), "an integer -2");
  EXPECT_EQ(Value("x / 2"), "a float 3.5");
  EXPECT_EQ(Value("8 / 2"), "a float 4");
  EXPECT_EQ(Value("-7.5 // 2"), "a float -4");
  EXPECT_EQ(Value("-7.5 % 2"), "a float 0.5");
  EXPECT_EQ(Value("32 % (64 / 8) == 0"), "a truth value true");
  EXPECT_EQ(Value("-2 ** 2"), "an integer -4");
  EXPECT_EQ(Value("2 ** 3 ** 2"), "an integer 512");
  EXPECT_EQ(Value("2 ** -1"), "a float 0.5");
  EXPECT_EQ(Value("flag + flag"), "an integer 2");
  EXPECT_EQ(Value("1 + 2 * 3 - 4"), "an integer 3");
  EXPECT_EQ(Value("1 << 4 | 3 & 2 ^ 1"), "an integer 19");
  EXPECT_EQ(Value("(x > 1) & flag | False"), "a truth value true");
  EXPECT_EQ(Value("~x"), "an integer -8");
  EXPECT_EQ(Value("0x20 + 1e1"), "a float 42");
}

TEST(ExpressionTest, LogicReturnsTheOperandThatDecides) {
  EXPECT_EQ(Value("0 or x"), "an integer 7");
  EXPECT_EQ(Value("x and y"), "an integer -2");
  EXPECT_EQ(Value("0 and 1 // 0"), "an integer 0");
  EXPECT_EQ(Value("x or 1 // 0"), "an integer 7");
  EXPECT_EQ(Value("not x == 7"), "a truth value false");
  EXPECT_EQ(Value("not 0.0 and not '' and not []"), "a truth value true");
  EXPECT_EQ(Value("1 if x > 8 else 2 if y else 3"), "an integer 2");
  EXPECT_EQ(Value("True == 1 and 1 == 1.0"), "a truth value true");
}

TEST(ExpressionTest, ComparisonsChain) {
  EXPECT_EQ(Value("1 <= x <= 7 != 8"), "a truth value true");
  EXPECT_EQ(Value("3 > 2 > 1"), "a truth value true");
  EXPECT_EQ(Value("8 < x < 1 // 0"), "a truth value false");  // the rest is not evaluated
  EXPECT_EQ(Value("x in [1, 7, 9]"), "a truth value true");
  EXPECT_EQ(Value("x not in (1, 2)"), "a truth value true");
  EXPECT_EQ(Value("name in {'float2', \"float4\"}"), "a truth value true");
  EXPECT_EQ(Value("'float' in name"), "a truth value true");
  EXPECT_EQ(Value("9007199254740993 == 9007199254740992.0"), "a truth value false");
}

TEST(ExpressionTest, IsComparesKindAndValue) {
  EXPECT_EQ(Value("None is None"), "a truth value true");
  EXPECT_EQ(Value("x is not None and flag is True"), "a truth value true");
  EXPECT_EQ(Value("1 is True or x is 7.0"), "a truth value false");
  EXPECT_EQ(Value("x is [7]"), "a truth value false");
  EXPECT_EQ(Value("None == 0 or None in [0, False]"), "a truth value false");
}

TEST(ExpressionTest, ElementsAreCountedFromBothEnds) {
  EXPECT_EQ(Value("[1, 2, 4][x - 5] + (8, 16)[-1]"), "an integer 20");
  EXPECT_EQ(Value("name[-1] == '4'"), "a truth value true");
  EXPECT_EQ(Value("[i for i in [[1, 2], [3]][0] if i > 1]"), "a list [2]");
  EXPECT_EQ(Value("[1, 2][2]"), "column 7: element 2 of 2; expected one that is there");
  EXPECT_EQ(
      Value("x[0]"),
      "column 2: an element of an integer by an integer; expected one of a list or a text, by an integer");
  EXPECT_EQ(Value("[1, 2][0"), "column 9: the text ends; expected `]`");
}

TEST(ExpressionTest, FunctionsOfNumbers) {
  EXPECT_EQ(Value("round(2.5) + round(3.5) + round(x)"), "an integer 13");  // halves go to the even number
  EXPECT_EQ(Value("round(2.675, 2)"), "a float 2.67");                      // its binary value is less
  EXPECT_EQ(Value("math.gcd(12, 18, -8)"), "an integer 2");
  EXPECT_EQ(Value("math.prod([2, 3, x])"), "an integer 42");
  EXPECT_EQ(Value("math.log(8, 2) == 3 and math.log10(1000) == 3"), "a truth value true");
  EXPECT_EQ(Value("math.pow(2, 3)"), "a float 8");
  EXPECT_EQ(Value("math.log(y)"),
            "column 1: a logarithm of a number that is not positive; expected one that is");
  EXPECT_EQ(Value("round(1.5, 99)"),
            "column 1: round with other decimal places; expected an integer of 0 to 15");
}

TEST(ExpressionTest, ListsAreWrittenInManyWays) {
  EXPECT_EQ(Value("[16*i for i in range(1,5)]"), "a list [16, 32, 48, 64]");
  EXPECT_EQ(Value("list(range(9, 0, -4))"), "a list [9, 5, 1]");
  EXPECT_EQ(Value("[1, 2, 4] + list(range(32, 64+1, 32))"), "a list [1, 2, 4, 32, 64]");
  EXPECT_EQ(Value("1, 2.5, 'a', True"), "a list [1, 2.5, a, true]");
  EXPECT_EQ(Value("[i * j for i in range(3) if i % 2 == 0 for j in [1, i] if j]"), "a list [0, 2, 4]");
  EXPECT_EQ(Value("[i for i in (range(2) if x else range(3))]"), "a list [0, 1]");
  EXPECT_EQ(Value("sum(i for i in range(4)) + max(x, 3) + min([4, 2]) + abs(y) + len(name)"),
            "an integer 23");
  EXPECT_EQ(Value("sorted(set([3, 1, 3]))"), "a list [1, 3]");
  EXPECT_EQ(Value("all([1, x]) and any([0, 0]) == False"), "a truth value true");
  EXPECT_EQ(Value("math.ceil(x / 2) * int(2.9)"), "an integer 8");
  EXPECT_EQ(Value("[1, 2] * 2 + 0 * [3]"), "a list [1, 2, 1, 2]");
  EXPECT_EQ(Value("[]"), "a list []");
  EXPECT_EQ(Value("(5)"), "an integer 5");
  EXPECT_EQ(Value("(5,)"), "a list [5]");
}

TEST(ExpressionTest, NamesMayBeWrittenAsSubscripts) {
  EXPECT_EQ(Value("p[\"x\"] * params['y']"), "an integer -14");
  EXPECT_EQ(*Expression::Parse("y + p['x']", {"x", "y", "z"})->used().begin(), 0);
  EXPECT_EQ(Value("p['z']"), "column 3: unknown name `z`; expected a parameter: x, y, name, flag");
}

TEST(ExpressionTest, RefusalsNameTheColumnAndWhatWasExpected) {
  EXPECT_EQ(Value("x *"), "column 4: the text ends; expected a value");
  EXPECT_EQ(Value("x * (y + 1"), "column 11: the text ends; expected `,` or `)`");
  EXPECT_EQ(Value("x y"), "column 3: `y`; expected an operator or the end");
  EXPECT_EQ(Value("x = 3"), "column 3: `=`; expected a name, a number or an operator");
  EXPECT_EQ(Value("flat"),
            "column 1: unknown name `flat`; expected a parameter: x, y, name, flag (did you mean flag?)");
  EXPECT_EQ(Value("'a"), "column 1: a text without an end; expected a closing '");
  EXPECT_EQ(Value("99999999999999999999"),
            "column 1: `99999999999999999999`; expected a float or an integer of at most 64 bits");
  EXPECT_EQ(Value("abs(1, 2)"), "column 1: `abs` with 2 arguments; expected 1");
  EXPECT_EQ(Value("x if y"), "column 7: the text ends; expected `else`");
  EXPECT_NE(Value("open('f')").find("unknown function `open`; expected one of abs"), std::string::npos);
  EXPECT_NE(Value(std::string(200, '(')).find("nested too deeply"), std::string::npos);
}

TEST(ExpressionTest, WhatPythonRaisesIsAnError) {
  EXPECT_EQ(Value("1 + x % 0"), "column 7: `%` by zero; expected another divisor");
  EXPECT_EQ(Value("name < 3"), "column 1: `<` of a text and an integer; expected two numbers or two texts");
  EXPECT_EQ(Value("name * 2.0"), "column 6: `*` of a text and a float; expected numbers");
  EXPECT_EQ(Value("x in 7"), "column 1: `in` of an integer and an integer; expected a list on the right");
  EXPECT_EQ(Value("max([])"), "column 1: min or max of nothing; expected at least one value");
  EXPECT_EQ(Value("[i for i in x]"), "column 1: `for` over an integer; expected a list");
}

TEST(ExpressionTest, AnIntegerOfMoreThan64BitsIsAnError) {
  EXPECT_EQ(Value("9223372036854775807 + 1"),
            "column 21: `+` overflows; expected an integer of at most 64 bits");
  EXPECT_EQ(Value("x ** 99"), "column 3: `**` overflows; expected an integer of at most 64 bits");
  EXPECT_EQ(Value("(-9223372036854775807 - 1) // -1"),
            "column 28: `//` overflows; expected an integer of at most 64 bits");
  EXPECT_EQ(Value("-9223372036854775807 % 3 * x"),
            "an integer 14");  // the product of divisor and quotient is too long
  EXPECT_EQ(Value("2 ** 62"), "an integer 4611686018427387904");
  EXPECT_EQ(Value("(-2) ** 63"), "an integer -9223372036854775808");
}

TEST(ExpressionTest, EndlessListsAreRefused) {
  EXPECT_NE(Value("len(range(10**9))").find("longer range"), std::string::npos);
  EXPECT_NE(Value("[1 for i in range(10**4) for j in range(10**4)]").find("expected fewer"),
            std::string::npos);
}

}  // namespace
}  // namespace mycc
