// Marks the errors that determine the exit status of a program: 2 for a wrong command line, 130 for an
// interrupt by the user as in shells, and 1 for every other failure. Pure.
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
