// A cursor over tokens, and the errors of unexpected tokens. Thread rule: one owner.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "codegen/workload/diagnostic.h"
#include "codegen/workload/lexer.h"

namespace mycc {

// An error is added to `diagnostics` when it is made; its status only ends the parsing of the current rule.
class TokenStream {
 public:
  // REQUIRES: `diagnostics` outlives the stream.
  TokenStream(TokenizedText text, Diagnostics* diagnostics)
      : text_(std::move(text)), diagnostics_(*diagnostics) {}

  // The token `ahead` of the next one; the end token repeats.
  const Token& Peek(size_t ahead = 0) const;
  // The token before the next one; the next one at the beginning.
  const Token& Previous() const {
    return text_.tokens[at_ == 0 ? 0 : std::min(at_, text_.tokens.size()) - 1];
  }
  bool AtEnd() const { return Peek().kind == Token::Kind::kEnd; }
  const Token& Next();
  bool Accept(const char* text);

  // `why` names the place: "after the axes of a stage".
  absl::Status Expect(const char* text, const std::string& why, const std::string& hint = "");
  // An empty hint is looked up in spellings.h.
  absl::Status Unexpected(const std::string& expected, const std::string& hint = "");
  absl::Status Error(Position position, const std::string& message, const std::string& hint = "");
  // An error that follows from an earlier one and is not reported.
  absl::Status Follows() const { return absl::InvalidArgumentError("follows from an earlier problem"); }
  const Diagnostics& diagnostics() const { return diagnostics_; }

  // Whether a stage begins here: `y =`, `y[...] =` or `y[...]: type`, which no expression contains.
  bool AtStage() const;
  bool AtLineBegin() const { return at_ == 0 || Previous().position.line < Peek().position.line; }

  // The number of tokens read.
  size_t at() const { return at_; }
  // The numbers of round and square brackets opened, and not closed, since `begin` tokens were read.
  struct Brackets {
    int round = 0, square = 0;
  };
  Brackets OpenSince(size_t begin) const;
  // The error of the first bracket, among the tokens read since `begin`, that is closed by another kind, by
  // none, or closes none.
  absl::Status CheckBrackets(size_t begin);

  const std::vector<Comment>& comments() const { return text_.comments; }

 private:
  TokenizedText text_;
  Diagnostics& diagnostics_;
  size_t at_ = 0;
};

}  // namespace mycc
