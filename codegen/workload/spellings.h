// Hints of refusals: how this language writes the words and signs of other languages and libraries. Pure
// functions; each returns "" when it has no hint.
#pragma once

#include <string>
#include <vector>

namespace mycc {

// For an unknown name in an expression: "`relu` is written max(x, 0.0)".
std::string SpellingOfName(const std::string& word);

// For an unknown type: "`float32` is written f32".
std::string SpellingOfType(const std::string& word);

// For a token that stands where the grammar has none, from it and the token before: `**`, `+=`, `x[i][j]`.
std::string SpellingOfSigns(const std::string& previous, const std::string& token);

// The same inside an expression, where `=` is no definition.
std::string SpellingInExpression(const std::string& token);

// For a text that begins with a character that begins no token.
std::string SpellingOfSign(const std::string& text);

// For a number's tail: "f" in `1.0f`.
std::string SpellingOfNumberTail(const std::string& tail);

// The expressions of `x`, `y` and `z`, floats, that SpellingOfName proposes; a test parses them.
std::vector<std::string> ProposedExpressions();

}  // namespace mycc
