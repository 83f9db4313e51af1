// Links object files to a shared library with lld, inside this process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace mycc {

// Links `objects`, which include the artifact runtime. The result exports exactly `exports`, needs only libc,
// libm and libgomp, and has `soname`. `files` are further object files. Errors: Internal with lld's message,
// e.g. for an undefined symbol. Thread rule: callable from any thread; calls run one at a time.
absl::StatusOr<std::string> LinkSharedObject(const std::vector<std::string_view>& objects,
                                             const std::vector<std::string>& exports,
                                             const std::string& soname,
                                             const std::vector<std::string>& files = {});

}  // namespace mycc
