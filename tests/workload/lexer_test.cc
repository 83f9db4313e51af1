#include "codegen/workload/lexer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mycc {
namespace {

using testing::ElementsAre;

std::vector<std::string> Words(const std::string& text) {
  const auto tokenized = Tokenize(text, "t");
  EXPECT_TRUE(tokenized.ok()) << tokenized.status();
  std::vector<std::string> words;
  if (!tokenized.ok()) return words;
  for (const Token& token : tokenized->tokens) words.push_back(token.text);
  EXPECT_EQ(words.back(), "");
  words.pop_back();
  return words;
}

std::string Problem(const std::string& text) {
  const auto tokenized = Tokenize(text, "t");
  return tokenized.ok() ? "" : std::string(tokenized.status().message());
}

TEST(Lexer, TheLongestPunctuationWins) {
  EXPECT_THAT(Words("a//b/c<=d<e->f-g"),
              ElementsAre("a", "//", "b", "/", "c", "<=", "d", "<", "e", "->", "f", "-", "g"));
  EXPECT_THAT(Words("!a!=b==c=d&&e||f"),
              ElementsAre("!", "a", "!=", "b", "==", "c", "=", "d", "&&", "e", "||", "f"));
  EXPECT_THAT(Words("N in 1..512"), ElementsAre("N", "in", "1", "..", "512"));
}

TEST(Lexer, Numbers) {
  const auto tokenized = Tokenize("12 0.5 1e5 2.5E-3 9223372036854775808 1e", "t");
  EXPECT_FALSE(tokenized.ok());
  const auto numbers = Tokenize("12 0.5 1e5 2.5E-3 9223372036854775808", "t");
  ASSERT_TRUE(numbers.ok());
  EXPECT_EQ(numbers->tokens[0].kind, Token::Kind::kInt);
  EXPECT_EQ(numbers->tokens[0].int_value, 12u);
  EXPECT_EQ(numbers->tokens[1].float_value, 0.5);
  EXPECT_EQ(numbers->tokens[2].float_value, 1e5);
  EXPECT_EQ(numbers->tokens[3].float_value, 2.5e-3);
  EXPECT_EQ(numbers->tokens[4].int_value, uint64_t{1} << 63);
}

TEST(Lexer, PlacesAreLinesAndColumnsFromOne) {
  const auto tokenized = Tokenize("a\n  b # c\n\n\td", "t");
  ASSERT_TRUE(tokenized.ok());
  EXPECT_EQ(tokenized->tokens[1].position.line, 2);
  EXPECT_EQ(tokenized->tokens[1].position.column, 3);
  EXPECT_EQ(tokenized->tokens[2].position.line, 4);
  EXPECT_EQ(tokenized->tokens[2].position.column, 2);
}

TEST(Lexer, CommentsWithALineOfTheirOwnAreKept) {
  const auto tokenized = Tokenize("# one\na # two\n  # three", "t");
  ASSERT_TRUE(tokenized.ok());
  ASSERT_EQ(tokenized->comments.size(), 2u);
  EXPECT_EQ(tokenized->comments[0].text, " one");
  EXPECT_EQ(tokenized->comments[1].text, " three");
  EXPECT_EQ(tokenized->comments[1].line, 3);
}

TEST(Lexer, RefusalsHaveAPlace) {
  EXPECT_EQ(Problem("a\n $"),
            "t:2:2: unexpected `$`; expected a name, a number, an operator or `#` and a comment");
  EXPECT_EQ(Problem("\xc3\xa9"),
            "t:1:1: unexpected byte 0xc3; expected a name, a number, an operator or `#` and a comment");
  EXPECT_EQ(Problem("3x"), "t:1:1: malformed number `3x`; expected digits such as 12, 0.5 or 1e-5");
  EXPECT_EQ(Problem("1."), "t:1:1: malformed number `1.`; expected digits such as 12, 0.5 or 1e-5");
  EXPECT_EQ(Problem("1e999"), "t:1:1: 1e999 is out of range; expected a finite f64, or `inf`");
  EXPECT_EQ(Problem("9223372036854775809"),
            "t:1:1: the integer 9223372036854775809 is out of range; expected at most 9223372036854775807");
}

TEST(Lexer, AnEmbeddedZeroByteIsNotTheEnd) {
  EXPECT_EQ(Problem(std::string("a\0b", 3)),
            "t:1:2: unexpected byte 0x00; expected a name, a number, an operator or `#` and a comment");
}

}  // namespace
}  // namespace mycc
