#include "codegen/workload/token_stream.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/workload/spellings.h"

namespace mycc {

const Token& TokenStream::Peek(size_t ahead) const {
  return text_.tokens[std::min(at_ + ahead, text_.tokens.size() - 1)];
}

const Token& TokenStream::Next() {
  const Token& token = Peek();
  at_ = std::min(at_ + 1, text_.tokens.size());
  return token;
}

bool TokenStream::Accept(const char* text) {
  if (!Peek().Is(text)) return false;
  Next();
  return true;
}

absl::Status TokenStream::Expect(const char* text, const std::string& why, const std::string& hint) {
  if (Accept(text)) return absl::OkStatus();
  return Unexpected(absl::StrCat("`", text, "` ", why), hint);
}

absl::Status TokenStream::Unexpected(const std::string& expected, const std::string& hint) {
  const Token& token = Peek();
  if (token.kind == Token::Kind::kInvalid) return Follows();
  std::string found = hint.empty() ? SpellingOfSigns(Previous().text, token.text) : hint;
  if (found.empty() && token.kind == Token::Kind::kName) found = SpellingOfName(token.text);
  const std::string what = AtEnd() ? "the text ends here" : absl::StrCat("unexpected ", Describe(token));
  return Error(token.position, absl::StrCat(what, "; expected ", expected), found);
}

absl::Status TokenStream::Error(Position position, const std::string& message, const std::string& hint) {
  const auto token = std::ranges::lower_bound(text_.tokens, position, {}, &Token::position);
  const bool found = token != text_.tokens.end() && token->position == position;
  diagnostics_.Add({position, found ? std::max(1, static_cast<int>(token->text.size())) : 1, message, hint});
  return absl::InvalidArgumentError(message);
}

bool TokenStream::AtStage() const {
  constexpr size_t kLongestHead = 64;  // tokens
  // After a `:` there is a type.
  if (Peek().kind != Token::Kind::kName || Previous().Is(":")) return false;
  if (!Peek(1).Is("[")) return Peek(1).Is("=");
  size_t end = 2;
  while (end < kLongestHead && !Peek(end).Is("]") && !Peek(end).Is("=")) ++end;
  const bool has_type = Peek(end + 1).Is(":") && Peek(end + 2).kind == Token::Kind::kName;
  return Peek(end).Is("=") || Peek(end + 1).Is("=") || has_type;
}

TokenStream::Brackets TokenStream::OpenSince(size_t begin) const {
  Brackets open;
  for (size_t i = begin; i < std::min(at_, text_.tokens.size()); ++i) {
    const Token& token = text_.tokens[i];
    open.round += token.Is("(") ? 1 : token.Is(")") ? -1 : 0;
    open.square += token.Is("[") ? 1 : token.Is("]") ? -1 : 0;
  }
  return open;
}

absl::Status TokenStream::CheckBrackets(size_t begin) {
  std::vector<const char*> closers;  // of the open brackets, the innermost last
  const auto error_at = [&](const Token& token) {
    const std::string expected =
        closers.empty() ? "an operator or the next stage" : absl::StrCat("`", closers.back(), "` before");
    return Error(token.position, absl::StrCat("unexpected ", Describe(token), "; expected ", expected));
  };
  for (size_t i = begin; i < std::min(at_, text_.tokens.size()); ++i) {
    const Token& token = text_.tokens[i];
    if (token.Is("(")) closers.push_back(")");
    if (token.Is("[")) closers.push_back("]");
    if (!token.Is(")") && !token.Is("]")) continue;
    if (closers.empty() || token.text != closers.back()) return error_at(token);
    closers.pop_back();
  }
  return closers.empty() ? absl::OkStatus() : error_at(Peek());
}

}  // namespace mycc
