// Turns errno after a failed system call on a file into an absl::Status that names the file.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace mycc {

// "cannot open `x`: No such file or directory", after errno. NotFound, PermissionDenied, ResourceExhausted
// (no space, no memory, no descriptor), or FailedPrecondition.
absl::Status OsError(const std::string& doing, const std::string& path);

}  // namespace mycc
