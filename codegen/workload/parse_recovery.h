// The places at which parsing can go on after a problem. Pure functions of the tokens.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "codegen/workload/token_stream.h"

namespace mycc {

// Whether a version, as `v1`, comes next; and whether a workload begins here, with or without its version.
bool AtVersion(const TokenStream& tokens);
bool AtWorkload(const TokenStream& tokens);

// Skip to the next place where parsing can go on: a workload, a stage or the `}` after the stages, the `,` or
// `)` after an argument of a signature. `begin` is the first token of the rule that failed.
void SkipToWorkload(size_t begin, TokenStream* tokens);
void SkipToStage(size_t begin, TokenStream* tokens);
// An error, which is not reported, when the signature ends before.
absl::Status SkipArgument(size_t begin, TokenStream* tokens);

}  // namespace mycc
