#include "codegen/workload/lexer.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "codegen/workload/spellings.h"

namespace mycc {
namespace {

// Longest first, so that the first match is the right one.
constexpr std::string_view kPunctuation[] = {"->", "//", "<=", ">=", "==", "!=", "&&", "||", "..",
                                             "(",  ")",  "[",  "]",  "{",  "}",  ",",  ":",  "=",
                                             "+",  "-",  "*",  "/",  "%",  "<",  ">",  "!"};

bool IsNameStart(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool IsNamePart(char c) { return absl::ascii_isalnum(c) || c == '_'; }

class Lexer {
 public:
  Lexer(const std::string& text, Diagnostics* diagnostics) : text_(text), diagnostics_(*diagnostics) {}

  TokenizedText Run() {
    while (true) {
      SkipSpaceAndComments();
      Token token;
      token.position = {line_, static_cast<int>(at_ - line_start_) + 1};
      if (at_ == text_.size()) {
        result_.tokens.push_back(std::move(token));
        return std::move(result_);
      }
      ReadToken(&token);
      last_token_line_ = line_;
      result_.tokens.push_back(std::move(token));
    }
  }

 private:
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void SkipSpaceAndComments() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        const size_t end = std::min(text_.find('\n', at_), text_.size());
        if (last_token_line_ != line_)
          result_.comments.push_back({line_, text_.substr(at_ + 1, end - at_ - 1)});
        at_ = end;
      } else if (c == '\n') {
        ++line_;
        line_start_ = ++at_;
      } else if (absl::ascii_isspace(c)) {
        ++at_;
      } else {
        return;
      }
    }
  }

  void ReadToken(Token* token) {
    const char c = Peek();
    if (IsNameStart(c)) return ReadName(token);
    if (absl::ascii_isdigit(c)) return ReadNumber(token);
    for (std::string_view punctuation : kPunctuation) {
      if (text_.compare(at_, punctuation.size(), punctuation.data(), punctuation.size()) != 0) continue;
      token->kind = Token::Kind::kPunctuation;
      token->text = std::string(punctuation);
      at_ += punctuation.size();
      return;
    }
    ReadStranger(token);
  }

  // A character that begins no token. Consecutive bytes beyond ASCII are one token.
  void ReadStranger(Token* token) {
    const size_t begin = at_++;
    const auto is_ascii = [](char c) { return (static_cast<unsigned char>(c) & 0x80) == 0; };
    if (!is_ascii(text_[begin])) {
      while (at_ < text_.size() && !is_ascii(text_[at_])) ++at_;
    }
    const char c = text_[begin];
    const std::string shown = absl::ascii_isprint(c) ? absl::StrCat("`", std::string(1, c), "`")
                              : is_ascii(c) ? absl::StrFormat("byte 0x%02x", static_cast<unsigned char>(c))
                                            : "character that is not ASCII";
    Refuse(
        token, begin,
        absl::StrCat("unexpected ", shown, "; expected a name, a number, an operator or `#` and a comment"),
        SpellingOfSign(text_.substr(begin, at_ - begin + 1)));
  }

  void Refuse(Token* token, size_t begin, const std::string& message, const std::string& hint) {
    token->kind = Token::Kind::kInvalid;
    token->text = text_.substr(begin, at_ - begin);
    diagnostics_.Add({token->position, static_cast<int>(at_ - begin), message, hint});
  }

  void ReadName(Token* token) {
    const size_t begin = at_;
    while (IsNamePart(Peek())) ++at_;
    token->kind = Token::Kind::kName;
    token->text = text_.substr(begin, at_ - begin);
  }

  void SkipDigits() {
    while (absl::ascii_isdigit(Peek())) ++at_;
  }

  void ReadNumber(Token* token) {
    const size_t begin = at_;
    token->kind = Token::Kind::kInt;
    SkipDigits();
    if (Peek() == '.' && absl::ascii_isdigit(Peek(1))) {
      token->kind = Token::Kind::kFloat;
      ++at_;
      SkipDigits();
    }
    if (Peek() == 'e' || Peek() == 'E') {
      const size_t sign = Peek(1) == '+' || Peek(1) == '-' ? 1 : 0;
      if (absl::ascii_isdigit(Peek(1 + sign))) {
        token->kind = Token::Kind::kFloat;
        at_ += 1 + sign;
        SkipDigits();
      }
    }
    token->text = text_.substr(begin, at_ - begin);
    if (IsNamePart(Peek()) || (Peek() == '.' && Peek(1) != '.')) return RefuseNumber(token, begin);
    ConvertNumber(token, begin);
  }

  // A number with a tail, such as `3x`, `1.` or `1.0f`.
  void RefuseNumber(Token* token, size_t begin) {
    const size_t tail = at_;
    while (IsNamePart(Peek()) || (Peek() == '.' && Peek(1) != '.')) ++at_;
    const std::string written = Describe({Token::Kind::kName, text_.substr(begin, at_ - begin), {}, 0, 0});
    Refuse(token, begin,
           absl::StrCat("malformed number ", written, "; expected digits such as 12, 0.5 or 1e-5"),
           SpellingOfNumberTail(text_.substr(tail, at_ - tail)));
  }

  void ConvertNumber(Token* token, size_t begin) {
    if (token->kind == Token::Kind::kFloat) {
      if (absl::SimpleAtod(token->text, &token->float_value) && std::isfinite(token->float_value)) return;
      const std::string written = Describe(*token);
      return Refuse(token, begin, absl::StrCat(written, " is out of range; expected a finite f64, or `inf`"),
                    "");
    }
    if (absl::SimpleAtoi(token->text, &token->int_value)) return;
    const std::string written = Describe(*token);
    Refuse(token, begin,
           absl::StrCat("the integer ", written, " is out of range; expected at most 18446744073709551615"),
           "");
  }

  const std::string& text_;
  Diagnostics& diagnostics_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
  int last_token_line_ = 0;
  TokenizedText result_;
};

}  // namespace

TokenizedText Tokenize(const std::string& text, Diagnostics* diagnostics) {
  return Lexer(text, diagnostics).Run();
}

std::string Describe(const Token& token) {
  if (token.kind == Token::Kind::kEnd) return "the end of the text";
  constexpr size_t kShown = 60;
  if (token.text.size() > kShown) return absl::StrCat("`", token.text.substr(0, kShown), "...`");
  return absl::StrCat("`", token.text, "`");
}

}  // namespace mycc
