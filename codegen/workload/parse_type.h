// Parses types of tensors and their extents: the grammar from `type` down. Pure functions of the tokens.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "codegen/expr/buffer.h"
#include "codegen/workload/token_stream.h"

namespace mycc {

// The tensor `name` of the type that comes next.
absl::StatusOr<Buffer> ParseType(const std::string& name, TokenStream* tokens);

// The value of the extent that comes next: whole numbers and + - * // % of them. It may be negative.
absl::StatusOr<int64_t> ParseExtent(TokenStream* tokens);

}  // namespace mycc
