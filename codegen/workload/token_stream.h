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

// An error is added to `diagnostics` as it is made; its status only says that the rule being read is broken
// off.
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

  // `why` says what stands there: "after the axes of a stage".
  absl::Status Expect(const char* text, const std::string& why, const std::string& hint = "");
  // A hint that is not given is looked for.
  absl::Status Unexpected(const std::string& expected, const std::string& hint = "");
  absl::Status Error(Position position, const std::string& message, const std::string& hint = "");
  // An error that follows from an earlier one and is not told.
  absl::Status Follows() const { return absl::InvalidArgumentError("follows from an earlier problem"); }
  const Diagnostics& diagnostics() const { return diagnostics_; }

  // Whether a stage begins here: `y =`, or `y[...]` and `=` or `: type`, which are in no expression.
  bool AtStage() const;
  bool AtLineBegin() const { return at_ == 0 || Previous().position.line < Peek().position.line; }

  // How many tokens were read.
  size_t at() const { return at_; }
  // The brackets, round and square ones, that are open since `begin` tokens were read.
  struct Brackets {
    int round = 0, square = 0;
  };
  Brackets OpenSince(size_t begin) const;

  const std::vector<Comment>& comments() const { return text_.comments; }

 private:
  TokenizedText text_;
  Diagnostics& diagnostics_;
  size_t at_ = 0;
};

}  // namespace mycc
