// Tokens and their positions.
#include "codegen/workload/lexer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

using testing::ElementsAre;

// The tokens of a text that has no problem.
TokenizedText Tokens(const std::string& text) {
  Diagnostics diagnostics;
  TokenizedText tokens = Tokenize(text, &diagnostics);
  EXPECT_EQ(diagnostics.count(), 0u) << text;
  return tokens;
}

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  for (const Token& token : Tokens(text).tokens) words.push_back(token.text);
  EXPECT_EQ(words.back(), "");
  words.pop_back();
  return words;
}

std::string Problem(const std::string& text) {
  Diagnostics diagnostics;
  Tokenize(text, &diagnostics);
  return diagnostics.kept().empty() ? "" : OneLine("t", diagnostics.kept()[0]);
}

TEST(Lexer, TheLongestPunctuationWins) {
  EXPECT_THAT(Words("a//b/c<=d<e->f-g"),
              ElementsAre("a", "//", "b", "/", "c", "<=", "d", "<", "e", "->", "f", "-", "g"));
  EXPECT_THAT(Words("!a!=b==c=d&&e||f"),
              ElementsAre("!", "a", "!=", "b", "==", "c", "=", "d", "&&", "e", "||", "f"));
  EXPECT_THAT(Words("N in 1..512"), ElementsAre("N", "in", "1", "..", "512"));
}

TEST(Lexer, Numbers) {
  EXPECT_NE(Problem("12 0.5 1e5 2.5E-3 9223372036854775808 1e"), "");
  const TokenizedText numbers = Tokens("12 0.5 1e5 2.5E-3 9223372036854775808");
  EXPECT_EQ(numbers.tokens[0].kind, Token::Kind::kInt);
  EXPECT_EQ(numbers.tokens[0].int_value, 12u);
  EXPECT_EQ(numbers.tokens[1].float_value, 0.5);
  EXPECT_EQ(numbers.tokens[2].float_value, 1e5);
  EXPECT_EQ(numbers.tokens[3].float_value, 2.5e-3);
  EXPECT_EQ(numbers.tokens[4].int_value, uint64_t{1} << 63);
}

TEST(Lexer, PlacesAreLinesAndColumnsFromOne) {
  const TokenizedText tokenized = Tokens("a\n  b # c\n\n\td");
  EXPECT_EQ(tokenized.tokens[1].position.line, 2);
  EXPECT_EQ(tokenized.tokens[1].position.column, 3);
  EXPECT_EQ(tokenized.tokens[2].position.line, 4);
  EXPECT_EQ(tokenized.tokens[2].position.column, 2);
}

TEST(Lexer, CommentsWithALineOfTheirOwnAreKept) {
  const TokenizedText tokenized = Tokens("# one\na # two\n  # three");
  ASSERT_EQ(tokenized.comments.size(), 2u);
  EXPECT_EQ(tokenized.comments[0].text, " one");
  EXPECT_EQ(tokenized.comments[1].text, " three");
  EXPECT_EQ(tokenized.comments[1].line, 3);
}

constexpr char kExpected[] = "; expected a name, a number, an operator or `#` and a comment";

TEST(Lexer, RefusalsHaveAPlace) {
  EXPECT_EQ(Problem("a\n $"), absl::StrCat("t:2:2: unexpected `$`", kExpected));
  EXPECT_EQ(Problem("\xc3\xa9"), absl::StrCat("t:1:1: unexpected character that is not ASCII", kExpected));
  EXPECT_EQ(Problem("3x"), "t:1:1: malformed number `3x`; expected digits such as 12, 0.5 or 1e-5");
  EXPECT_EQ(Problem("1e999"), "t:1:1: `1e999` is out of range; expected a finite f64, or `inf`");
  EXPECT_EQ(
      Problem("18446744073709551616"),
      "t:1:1: the integer `18446744073709551616` is out of range; expected at most 18446744073709551615");
}

TEST(Lexer, HintsSayHowItIsWritten) {
  EXPECT_EQ(
      Problem("1."),
      "t:1:1: malformed number `1.`; expected digits such as 12, 0.5 or 1e-5 (a number has digits after "
      "its point: 1.0)");
  EXPECT_EQ(Problem("a\xc3\x97"
                    "b"),
            absl::StrCat("t:1:2: unexpected character that is not ASCII", kExpected,
                         " (a product is written `*`)"));
  EXPECT_EQ(Problem("a & b"), absl::StrCat("t:1:3: unexpected `&`", kExpected, " (and is written `&&`)"));
}

TEST(Lexer, AllRefusalsAreTold) {
  Diagnostics diagnostics;
  const TokenizedText tokens = Tokenize("a $ 3x\n\xe2\x88\x92 b", &diagnostics);
  ASSERT_EQ(diagnostics.count(), 3u);
  EXPECT_EQ(diagnostics.kept()[0].length, 1);
  EXPECT_EQ(diagnostics.kept()[1].length, 2);
  EXPECT_EQ(diagnostics.kept()[2].position, (Position{2, 1}));
  EXPECT_EQ(diagnostics.kept()[2].length, 3);
  EXPECT_EQ(tokens.tokens.size(), 6u);
  EXPECT_EQ(tokens.tokens[1].kind, Token::Kind::kInvalid);
}

TEST(Lexer, TheFirstProblemsByPlaceAreKeptAndAllAreCounted) {
  Diagnostics diagnostics;
  for (int line = 30; line > 0; --line) diagnostics.Add({{line, 1}, 1, absl::StrCat("problem ", line), ""});
  diagnostics.Add({{7, 1}, 1, "follows from the first there", ""});
  EXPECT_EQ(diagnostics.count(), 30u);
  ASSERT_EQ(diagnostics.kept().size(), Diagnostics::kMostKept);
  EXPECT_EQ(diagnostics.kept()[6].message, "problem 7");
  EXPECT_EQ(diagnostics.kept().back().message, "problem 20");
}

TEST(Lexer, AnEmbeddedZeroByteIsNotTheEnd) {
  EXPECT_EQ(Problem(std::string("a\0b", 3)), absl::StrCat("t:1:2: unexpected byte 0x00", kExpected));
}

}  // namespace
}  // namespace mycc
