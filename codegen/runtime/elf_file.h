// Checks a shared library's file before it is loaded. The loader maps the file and reads its pages; a
// truncated file would end the process with SIGBUS. Re-entrant.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace mycc {

// OK when everything that the loader maps lies within the file, and for what is no 64-bit ELF file at all: of
// those the loader says so itself. FailedPrecondition for a file that is cut short.
absl::Status CheckElfIsWhole(const std::string& path);

}  // namespace mycc
