// Reads the environment variables that make mycc print more. They never change generated code.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "codegen/ir/debug.h"

namespace mycc {

// MYCC_DEBUG, MYCC_PRINT_AFTER and MYCC_TIME_PASSES as `get` (getenv; null for unset) gives them. Misuse for
// a value that means nothing.
absl::StatusOr<PassDebug> ReadDebugVariables(const std::function<const char*(const char*)>& get);

}  // namespace mycc
