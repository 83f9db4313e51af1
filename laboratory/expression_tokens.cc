#include "laboratory/expression_tokens.h"

#include <cctype>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {
namespace {

bool IsWordStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool IsWordPart(char c) { return IsWordStart(c) || IsDigit(c); }

class TokenReader {
 public:
  explicit TokenReader(const std::string& text) : text_(text) {}

  absl::StatusOr<std::vector<ExpressionToken>> All() {
    std::vector<ExpressionToken> tokens;
    do {
      MYCC_ASSIGN_OR_RETURN(ExpressionToken token, Next());
      tokens.push_back(std::move(token));
    } while (tokens.back().kind != ExpressionTokenKind::kEnd);
    return tokens;
  }

 private:
  char At(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  absl::Status Fail(size_t at, const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat("column ", at + 1, ": ", what));
  }

  absl::StatusOr<ExpressionToken> Next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    ExpressionToken token;
    token.column = static_cast<int>(at_) + 1;
    if (at_ == text_.size()) return token;
    if (IsWordStart(At())) {
      const size_t start = at_;
      while (IsWordPart(At())) ++at_;
      token.kind = ExpressionTokenKind::kName;
      token.text = text_.substr(start, at_ - start);
      return token;
    }
    if (IsDigit(At()) || (At() == '.' && IsDigit(At(1)))) return Number(std::move(token));
    if (At() == '\'' || At() == '"') return Text(std::move(token));
    return Symbol(std::move(token));
  }

  absl::StatusOr<ExpressionToken> Number(ExpressionToken token) {
    const size_t start = at_;
    const bool is_hex = At() == '0' && (At(1) == 'x' || At(1) == 'X');
    bool is_float = false;
    if (is_hex) at_ += 2;
    while (IsWordPart(At()) || At() == '.') {
      const bool is_exponent = !is_hex && (At() == 'e' || At() == 'E');
      is_float |= is_exponent || At() == '.';
      ++at_;
      if (is_exponent && (At() == '+' || At() == '-')) ++at_;
    }
    const std::string word = text_.substr(start, at_ - start);
    token.text = word;
    token.kind = is_float ? ExpressionTokenKind::kFloat : ExpressionTokenKind::kInt;
    const bool is_number = is_float ? absl::SimpleAtod(word, &token.real)
                           : is_hex ? absl::SimpleHexAtoi(word, &token.integer)
                                    : absl::SimpleAtoi(word, &token.integer);
    if (!is_number)
      return Fail(start, absl::StrCat("`", word, "`; expected a float or an integer of at most 64 bits"));
    return token;
  }

  absl::StatusOr<ExpressionToken> Text(ExpressionToken token) {
    const size_t start = at_;
    const char quote = text_[at_++];
    token.kind = ExpressionTokenKind::kText;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && ++at_ == text_.size()) break;
      token.text += text_[at_++];
    }
    if (at_ == text_.size())
      return Fail(start,
                  absl::StrCat("a text without an end; expected a closing ", quote == '"' ? "\"" : "'"));
    ++at_;
    return token;
  }

  absl::StatusOr<ExpressionToken> Symbol(ExpressionToken token) {
    constexpr std::string_view kSymbols[] = {"**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+",
                                             "-",  "*",  "/",  "%",  "(",  ")",  "[",  "]",  "{",
                                             "}",  ",",  "<",  ">",  "&",  "|",  "^",  "~",  "."};
    for (const std::string_view symbol : kSymbols) {
      if (text_.compare(at_, symbol.size(), symbol) != 0) continue;
      token.kind = ExpressionTokenKind::kSymbol;
      token.text = std::string(symbol);
      at_ += symbol.size();
      return token;
    }
    const auto byte = static_cast<unsigned char>(At());
    return Fail(at_,
                byte >= 0x20 && byte < 0x7f
                    ? absl::StrCat("`", std::string(1, At()), "`; expected a name, a number or an operator")
                    : absl::StrCat("byte ", byte, "; expected a name, a number or an operator"));
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<ExpressionToken>> SplitExpression(const std::string& text) {
  return TokenReader(text).All();
}

}  // namespace mycc
