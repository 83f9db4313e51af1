#include "codegen/workload/parse_recovery.h"

namespace mycc {

bool AtVersion(const TokenStream& tokens) {
  const Token& token = tokens.Peek();
  return token.kind == Token::Kind::kName && token.text.size() > 1 && token.text[0] == 'v' &&
         token.text.find_first_not_of("0123456789", 1) == std::string::npos;
}

bool AtWorkload(const TokenStream& tokens) {
  return tokens.Peek().Is("workload") || (AtVersion(tokens) && tokens.Peek(1).Is("workload"));
}

void SkipToWorkload(size_t begin, TokenStream* tokens) {
  if (tokens->at() == begin) tokens->Next();
  while (!tokens->AtEnd() && !AtWorkload(*tokens)) tokens->Next();
}

void SkipToStage(size_t begin, TokenStream* tokens) {
  if (tokens->at() == begin) tokens->Next();
  while (!tokens->AtEnd() && !tokens->Peek().Is("}") && !AtWorkload(*tokens) && !tokens->AtStage())
    tokens->Next();
}

absl::Status SkipArgument(size_t begin, TokenStream* tokens) {
  TokenStream::Brackets open = tokens->OpenSince(begin);
  for (; !tokens->AtEnd() && !AtWorkload(*tokens); tokens->Next()) {
    const Token& token = tokens->Peek();
    if (token.Is("{") || token.Is("->") || token.Is("}")) break;
    if (token.Is(")") && open.round <= 0) return absl::OkStatus();
    if (token.Is(",") && open.round <= 0 && open.square <= 0) return absl::OkStatus();
    open.round += token.Is("(") ? 1 : token.Is(")") ? -1 : 0;
    open.square += token.Is("[") ? 1 : token.Is("]") ? -1 : 0;
  }
  return tokens->Follows();
}

}  // namespace mycc
