// Reads the files of recorded spaces: plain text, gzip or zip, told by their first bytes.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace mycc {

inline constexpr int64_t kMostRecordedBytes = int64_t{2} << 30;  // of a file, and of what it unpacks to

// The text of a file, unpacked. A gzip file that breaks off gives what can be unpacked, as its writer may be
// at work still: `is_cut` tells. A zip file has to hold one file. Errors name the path: those of file.h, and
// InvalidArgument for what cannot be unpacked or is too long.
absl::StatusOr<std::string> ReadRecordedFile(const std::string& path, bool* is_cut);

}  // namespace mycc
