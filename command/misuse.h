// Marks the errors that determine the exit status of a program: 2 for a wrong command line, 130 for an
// interrupt by the user as in shells, and 1 for every other failure. Also carries the lines that stand before
// an error. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace mycc {

// InvalidArgument, marked as the caller's mistake in the command line itself.
absl::Status Misuse(const std::string& message);

// The same status with lines that are printed before its message: the problems that it counts.
absl::Status WithListing(absl::Status status, const std::string& listing);
std::string ListingOf(const absl::Status& status);

// Cancelled, by the user's own interrupt of the command.
absl::Status Interrupted(const std::string& message);
inline constexpr int kInterruptedExitStatus = 130, kMisuseExitStatus = 2;

// 0, 1 (failed), 2 (misused) or 130 (interrupted).
int ExitStatus(const absl::Status& status);

}  // namespace mycc
