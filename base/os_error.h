// A failed system call on a file, as a status.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace mycc {

// "cannot open `x`: No such file or directory", after errno. NotFound, PermissionDenied, ResourceExhausted
// (no space, no memory, no descriptor), or FailedPrecondition.
absl::Status OsError(const std::string& doing, const std::string& path);

}  // namespace mycc
