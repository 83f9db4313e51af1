// Splits the language's text into tokens with their positions. Thread rule: pure functions over values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mycc {

struct Position {
  int line = 1;
  int column = 1;  // in bytes, from 1
};

struct Token {
  enum class Kind : uint8_t { kEnd, kName, kInt, kFloat, kPunctuation };
  Kind kind = Kind::kEnd;
  std::string text;
  Position position;
  uint64_t int_value = 0;  // kInt: at most 2^63, so that the lowest i64 can be written
  double float_value = 0;  // kFloat: finite

  bool Is(const char* expected) const { return kind != Kind::kEnd && text == expected; }
};

// A comment that has a line of its own; `# count N` is the only one with a meaning.
struct Comment {
  int line;
  std::string text;  // without the '#'
};

struct TokenizedText {
  std::vector<Token> tokens;  // ends with a kEnd token
  std::vector<Comment> comments;
};
absl::StatusOr<TokenizedText> Tokenize(const std::string& text, const std::string& origin);

// InvalidArgument "ORIGIN:LINE:COLUMN: message".
absl::Status ErrorAt(const std::string& origin, Position position, const std::string& message);

// A token as error messages call it: "`max`", "the end of the text".
std::string Describe(const Token& token);

}  // namespace mycc
