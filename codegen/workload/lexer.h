// Splits the language's text into tokens with their positions. Thread rule: pure functions over values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/workload/diagnostic.h"

namespace mycc {

struct Token {
  // kInvalid: not a token of the language; its problem is reported already.
  enum class Kind : uint8_t { kEnd, kName, kInt, kFloat, kPunctuation, kInvalid };
  Kind kind = Kind::kEnd;
  std::string text;
  Position position;
  uint64_t int_value = 0;  // kInt
  double float_value = 0;  // kFloat: finite

  bool Is(const char* expected) const {
    return kind != Kind::kEnd && kind != Kind::kInvalid && text == expected;
  }
};

// A comment on a line of its own. Only `# count N` has a meaning.
struct Comment {
  int line;
  std::string text;  // without the '#'
};

struct TokenizedText {
  std::vector<Token> tokens;  // ends with a kEnd token
  std::vector<Comment> comments;
};
TokenizedText Tokenize(const std::string& text, Diagnostics* diagnostics);

// A token in an error message: "`max`", "the end of the text".
std::string Describe(const Token& token);

}  // namespace mycc
