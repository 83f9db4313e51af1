// Checks a shared library's file before it is loaded: loading a truncated file would end the process with
// SIGBUS. Thread rule: functions are re-entrant.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace mycc {

// OK when everything that the loader maps lies within the file, and for a file that is not 64-bit ELF: the
// loader itself refuses that. FailedPrecondition for a truncated file.
absl::Status CheckElfIsWhole(const std::string& path);

}  // namespace mycc
