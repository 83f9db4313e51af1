// The tokens of a Python expression. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mycc {

enum class ExpressionTokenKind : uint8_t { kEnd, kName, kInt, kFloat, kText, kSymbol };

struct ExpressionToken {
  ExpressionTokenKind kind = ExpressionTokenKind::kEnd;
  std::string text;  // a name, a symbol, or the contents of a text
  int64_t integer = 0;
  double real = 0;
  int column = 1;  // in bytes, from 1
};

// Ends in a token kEnd. InvalidArgument "column 5: ..." on a character, a number or a text that is none.
absl::StatusOr<std::vector<ExpressionToken>> SplitExpression(const std::string& text);

}  // namespace mycc
