// A cursor over tokens, and the errors of unexpected tokens. Thread rule: one owner.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "codegen/workload/lexer.h"

namespace mycc {

class TokenStream {
 public:
  TokenStream(TokenizedText text, std::string origin) : text_(std::move(text)), origin_(std::move(origin)) {}

  // The token `ahead` of the next one; the end token repeats.
  const Token& Peek(size_t ahead = 0) const {
    return text_.tokens[std::min(at_ + ahead, text_.tokens.size() - 1)];
  }
  bool AtEnd() const { return Peek().kind == Token::Kind::kEnd; }

  const Token& Next() {
    const Token& token = Peek();
    ++at_;
    return token;
  }

  bool Accept(const char* text) {
    if (!Peek().Is(text)) return false;
    ++at_;
    return true;
  }

  // `why` says what stands there: "after the axes of a stage".
  absl::Status Expect(const char* text, const std::string& why) {
    if (Accept(text)) return absl::OkStatus();
    return Unexpected(absl::StrCat("`", text, "` ", why));
  }

  absl::Status Unexpected(const std::string& expected) const {
    return Error(Peek().position, absl::StrCat("unexpected ", Describe(Peek()), "; expected ", expected));
  }
  absl::Status Error(Position position, const std::string& message) const {
    return ErrorAt(origin_, position, message);
  }

  const std::vector<Comment>& comments() const { return text_.comments; }

 private:
  TokenizedText text_;
  std::string origin_;
  size_t at_ = 0;
};

}  // namespace mycc
