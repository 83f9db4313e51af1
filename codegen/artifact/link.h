// Links object files to a shared library with lld, inside this process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace mycc {

// Links `objects`, the artifact runtime among them; the result exports exactly `exports`, needs libc, libm
// and libgomp alone, and has `soname`. Errors: Internal with lld's words, e.g. for a symbol that none of
// these has. Thread rule: calls run one after the other.
absl::StatusOr<std::string> LinkSharedObject(const std::vector<std::string_view>& objects,
                                             const std::vector<std::string>& exports,
                                             const std::string& soname);

}  // namespace mycc
