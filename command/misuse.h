// A command that was called wrongly ends with status 2, one that was interrupted with 130, as a shell has it,
// and one that failed with status 1; this tells them apart. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace mycc {

// InvalidArgument, marked as the caller's mistake in the command line itself.
absl::Status Misuse(const std::string& message);

// Cancelled, by the user's own interrupt of the command.
absl::Status Interrupted(const std::string& message);
inline constexpr int kInterruptedExitStatus = 130;

// 0, 1 (failed), 2 (misused) or 130 (interrupted).
int ExitStatus(const absl::Status& status);

}  // namespace mycc
