// All problems of a text at once: one for each place that is wrong, none that follows from another, and hints
// for what other languages write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/spellings.h"

namespace mycc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> Problems(const std::string& text) {
  const ParsedText parsed = ParseText(text);
  EXPECT_EQ(parsed.workloads.empty(), !parsed.problems.empty());
  std::vector<std::string> lines;
  for (const Diagnostic& problem : parsed.problems)
    lines.push_back(absl::StrCat(problem.position.line, ":", problem.position.column, " ", problem.message));
  return lines;
}

std::string HintIn(const std::string& value) {
  const ParsedText parsed =
      ParseText(absl::StrCat("workload f(x: f32[8], p: bool[8]) -> (y: f32[8]) {\ny[i] = ", value, "\n}"));
  EXPECT_EQ(parsed.problems.size(), 1u) << value;
  return parsed.problems.empty() ? "" : parsed.problems[0].hint;
}

std::string HintForType(const std::string& type) {
  const ParsedText parsed =
      ParseText(absl::StrCat("workload f(x: ", type, "[8]) -> (y: f32[8]) { y[i] = 0.0 }"));
  EXPECT_EQ(parsed.problems.size(), 1u) << type;
  return parsed.problems.empty() ? "" : parsed.problems[0].hint;
}

TEST(DiagnosticsTest, EveryStageAndEveryWorkloadIsRead) {
  EXPECT_THAT(Problems(R"(workload f(x: f32[8], w: f32[9]) -> (y: f32[8], z: f32[8]) {
  t[i]: f32[8] = x[i] + 1
  u[i]: f32[8] = t[i] * w[i+2]
  y[i] = u[i] +
  z[i] = q[i]
}
workload g(x: float32[8]) -> (y: f32[8]) {
  y[i] = x[i]
}
workload h(x: f32[8]) -> (y: f32[8]) {
  y[i] = x[i] $ 2
})"),
              ElementsAre(HasSubstr("2:23 `+` of f32 and i64"), HasSubstr("3:27 index `i + 2` of `w`"),
                          HasSubstr("5:3 unexpected `z`; expected an expression before"),
                          HasSubstr("5:10 unknown tensor `q`"), HasSubstr("7:15 unexpected `float32`"),
                          HasSubstr("11:15 unexpected `$`")));
}

TEST(DiagnosticsTest, WhatFollowsFromAProblemIsNotTold) {
  // A tensor whose type is broken is read and written; a stage is lost, and with it an output.
  EXPECT_THAT(Problems("workload f(x: f33[8], w: f32[8]) -> (y: f32[8], z: g32[8]) {\n"
                       "  t[i]: f32[8] = x[i] * x[i]\n  y[i] = t[i]\n  z[i] = w[i]\n}"),
              ElementsAre(HasSubstr("1:15"), HasSubstr("1:52")));
  EXPECT_THAT(Problems("workload f(x: f32[8]) -> (y: f32[8]) {\n  5[i] = x[i]\n}"),
              ElementsAre(HasSubstr("2:3 unexpected `5`")));
  EXPECT_THAT(
      Problems("workload f(x: f32[8]) -> (y: f32[8]) {\n  y[i] = x[i]\nworkload g() -> (y: f32[]) {y[]=0.0}"),
      ElementsAre(HasSubstr("3:1 unexpected `workload`")));
  EXPECT_THAT(Problems("workload f(x: f32[8]) (y: f32[8]) {\n  y[i] = q[i]\n}"),
              ElementsAre(HasSubstr("1:23 unexpected `(`; expected `->`")));
}

TEST(DiagnosticsTest, BracketsOfAStageThatReadsABrokenInputAreChecked) {
  EXPECT_THAT(Problems("workload f(x: f33[8], w: f32[8]) -> (y: f32[8], z: f32[8], v: f32[8]) {\n"
                       "  y[i] = exp(x[i + 1]\n  z[i] = (w[i] + x[i)]\n  v[i] = max(x[i], w[i]))\n"
                       "  u[i]: f32[8] = (x[i]\n}"),
              ElementsAre(HasSubstr("1:15"), HasSubstr("3:3 unexpected `z`; expected `)` before"),
                          HasSubstr("3:21 unexpected `)`; expected `]` before"),
                          HasSubstr("4:25 unexpected `)`; expected an operator or the next stage"),
                          HasSubstr("6:1 unexpected `}`; expected `)` before")));
}

TEST(DiagnosticsTest, EveryArgumentOfASignatureIsRead) {
  EXPECT_THAT(
      Problems("workload f(x: f32[N,4], max: f32[2], w f32[3], v: f32[3,]) -> (y: f32[4.0], z: f32[2]) {\n"
               "  z[i] = v[i]\n}"),
      ElementsAre(HasSubstr("1:19 symbolic extents such as `N`"), HasSubstr("1:25 `max` is a word"),
                  HasSubstr("1:40 unexpected `f32`"), HasSubstr("1:57 unexpected `]`"),
                  HasSubstr("1:71 unexpected `4.0`")));
}

TEST(DiagnosticsTest, LaterStagesReadATensorWhoseValueIsRefused) {
  EXPECT_THAT(
      Problems("workload f(x: f32[8]) -> (y: f32[8]) {\n  t[i]: f32[8] = x[i] + 1\n  y[i] = t[i] + 1\n}"),
      ElementsAre(HasSubstr("2:23"), HasSubstr("3:15")));
}

TEST(DiagnosticsTest, TheFirstTwentyAreKeptAndTheOthersCounted) {
  std::string stages;
  for (int i = 0; i < 25; ++i) absl::StrAppend(&stages, "t", i, "[i]: f32[8] = x[i] + 1\n");
  const ParsedText parsed =
      ParseText(absl::StrCat("workload f(x: f32[8]) -> (y: f32[8]) {\n", stages, "y[i] = x[i]\n}"));
  EXPECT_EQ(parsed.problems.size(), 20u);
  EXPECT_EQ(parsed.problems.back().position.line, 21);
  EXPECT_EQ(parsed.left_out, 5u);
}

TEST(DiagnosticsTest, AProblemIsAsLongAsItsWord) {
  const ParsedText parsed = ParseText("workload f(x: float32[8]) -> (y: f32[8]) { y[i] = 0.0 }");
  ASSERT_EQ(parsed.problems.size(), 1u);
  EXPECT_EQ(parsed.problems[0].length, 7);
}

TEST(DiagnosticsTest, FunctionsOfOthersHaveASpelling) {
  EXPECT_EQ(HintIn("mean[k:8](x[k])"), "a mean is a sum of quotients: sum[k:8](x[k] / 8.0)");
  EXPECT_EQ(HintIn("sigmoid(x[i])"), "`sigmoid` is written 1.0 / (1.0 + exp(-x))");
  EXPECT_EQ(HintIn("ReLU(x[i])"), "`ReLU` is written max(x, 0.0)");
  EXPECT_EQ(HintIn("gelu(x[i])"), "`gelu` is written 0.5 * x * (1.0 + erf(x * 0.70710678))");
  EXPECT_EQ(HintIn("Tanh(x[i])"), "`Tanh` is written tanh");
  EXPECT_THAT(HintIn("softmax(x[i])"), HasSubstr("three stages"));
  EXPECT_THAT(HintIn("matmul(x, x)"), HasSubstr("sum[k:8](a[i,k] * b[k,j])"));
  EXPECT_EQ(HintIn("float32(x[i])"), "`float32` is written f32");
}

TEST(DiagnosticsTest, SignsOfOthersHaveASpelling) {
  EXPECT_EQ(HintIn("x[i] ** 2.0"), "a power is written pow(x, y)");
  EXPECT_EQ(HintIn("x[i] ^ 2.0"), "a power is written pow(x, y)");
  EXPECT_EQ(HintIn("select(p[i] & p[i], x[i], 0.0)"), "and is written `&&`");
  EXPECT_EQ(HintIn("p[i] ? x[i] : 0.0"), "a choice is written select(c, a, b)");
  EXPECT_EQ(HintIn("select(p[i] and p[i], x[i], 0.0)"), "and is written `&&`");
  EXPECT_EQ(HintIn("select(x[i] = 0.0, x[i], 0.0)"), "equality is written `==`");
  EXPECT_EQ(HintIn("x[i][0]"), "all indices stand in one pair of brackets: x[i,j]");
  EXPECT_EQ(HintIn("x(i)"), "indices stand in square brackets: x[i,j]");
  EXPECT_EQ(HintIn("x[i] // twice\n"), "a comment begins with `#`");
  EXPECT_EQ(HintIn("x[i];"), "nothing stands between stages");
  EXPECT_EQ(HintIn(".5"), "a number has digits before its point: 0.5");
}

TEST(DiagnosticsTest, TypesOfOthersHaveASpelling) {
  EXPECT_EQ(HintForType("float32"), "`float32` is written f32");
  EXPECT_EQ(HintForType("F16"), "`F16` is written f16");
  EXPECT_EQ(HintForType("bfloat16"), "`bfloat16` is written bf16");
  EXPECT_EQ(HintForType("size_t"), "`size_t` is written i64");
  EXPECT_EQ(HintForType("int16"), "`int16` is written i16");
  EXPECT_EQ(HintForType("uint64_t"), "`uint64_t` is written u64");
  EXPECT_EQ(HintForType("int24"), "the integers have 64, 32, 16 or 8 bits: i64, u64, .. i8, u8");
}

TEST(DiagnosticsTest, TheNearestNameIsProposed) {
  const ParsedText parsed = ParseText(
      "workload f(weight: f32[8], bias: f32[8]) -> (y: f32[8]) {\n  y[i] = weigth[i] + slect(true, bias[i], "
      "0.0)\n}");
  ASSERT_EQ(parsed.problems.size(), 1u);
  EXPECT_EQ(parsed.problems[0].hint, "did you mean `weight`?");
  EXPECT_EQ(HintIn("slect(p[i], x[i], 0.0)"), "did you mean `select`?");
  EXPECT_EQ(HintIn("x[row]"), "");
}

// The language accepts the proposals of its hints.
TEST(DiagnosticsTest, ProposedExpressionsAreOfTheLanguage) {
  for (const std::string& expression : ProposedExpressions()) {
    // The operands' names are no part of a function's, but for the x of exp and max.
    std::string value;
    for (size_t i = 0; i < expression.size(); ++i) {
      const bool is_operand = expression[i] >= 'x' && expression[i] <= 'z' &&
                              (i == 0 || !isalnum(expression[i - 1])) &&
                              (i + 1 == expression.size() || !isalnum(expression[i + 1]));
      value += is_operand ? absl::StrCat(expression.substr(i, 1), "[i]") : expression.substr(i, 1);
    }
    EXPECT_THAT(Problems(absl::StrCat(
                    "workload f(x: f32[8], y: f32[8], z: f32[8]) -> (r: f32[8]) { r[i] = ", value, " }")),
                IsEmpty())
        << value;
  }
}

// Problems of every kind, `scale` times a thousandth of what a file may hold; the seconds of this process
// that it took to tell them.
double SecondsToTellProblems(int scale) {
  std::string inputs, unknown, brackets = "workload f(x: f32[8]) -> (y: f32[8]) {", stages;
  for (int i = 0; i < 20 * scale; ++i) absl::StrAppend(&inputs, i == 0 ? "" : ", ", "input", i, ": f32[1]");
  for (int i = 0; i < 250; ++i) absl::StrAppend(&unknown, "t", i, "[i]: f32[1] = inptu", i, "[i]\n");
  for (int i = 0; i < 100 * scale; ++i) brackets += "a[a[b,";
  for (int i = 0; i < 20 * scale; ++i) absl::StrAppend(&stages, "workload y[i] = q ");
  const std::clock_t begin = std::clock();
  EXPECT_EQ(ParseText(absl::StrCat("workload f(", inputs, ") -> (y: f32[1]) {\n", unknown, "y[i] = 0.0 }"))
                .left_out,
            230u);
  EXPECT_FALSE(Problems(brackets).empty());
  EXPECT_FALSE(Problems(std::string(1000 * scale, '$')).empty());
  EXPECT_FALSE(Problems(stages).empty());
  return double(std::clock() - begin) / CLOCKS_PER_SEC;
}

// Eight times the text takes eight times as long, give or take, where each problem cost a look at all the
// text it would take 64 times.
TEST(DiagnosticsTest, TextOfNothingButProblemsIsReadInTime) {
  const double some = SecondsToTellProblems(100);
  EXPECT_LT(SecondsToTellProblems(800), 24 * some);
}

}  // namespace
}  // namespace mycc
