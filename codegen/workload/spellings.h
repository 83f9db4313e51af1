// Hints for error messages: how this language writes the words and operators of other languages and
// libraries. Pure functions; each returns "" when it has no hint.
#pragma once

#include <string>
#include <vector>

namespace mycc {

// For an unknown name in an expression: "`relu` is written max(x, 0.0)".
std::string SpellingOfName(const std::string& word);

// For an unknown type: "`float32` is written f32".
std::string SpellingOfType(const std::string& word);

// For an unexpected token, from it and the token before: `**`, `+=`, `x[i][j]`.
std::string SpellingOfSigns(const std::string& previous, const std::string& token);

// The same inside an expression, where `=` does not begin a definition.
std::string SpellingInExpression(const std::string& token);

// For text whose first character begins no token.
std::string SpellingOfSign(const std::string& text);

// For letters after a number: "f" in `1.0f`.
std::string SpellingOfNumberTail(const std::string& tail);

// The expressions that SpellingOfName proposes, over floats `x`, `y` and `z`; a test parses them.
std::vector<std::string> ProposedExpressions();

}  // namespace mycc
