// A command that was called wrongly ends with status 2, one that failed with status 1; this tells the two
// apart. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace mycc {

// InvalidArgument, marked as the caller's mistake in the command line itself.
absl::Status Misuse(const std::string& message);

// 0, 1 (failed) or 2 (misused).
int ExitStatus(const absl::Status& status);

}  // namespace mycc
