// Reads whole files, and writes a file so that it is complete or absent, never half written.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mycc {

// Errors name the path and the operating system's reason: NotFound, PermissionDenied, or FailedPrecondition
// (a folder). InvalidArgument when the file is longer than `most_bytes`; no more bytes than these are read.
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     int64_t most_bytes = std::numeric_limits<int64_t>::max());
// The first bytes of a file, shorter when the file is.
absl::StatusOr<std::string> ReadBeginning(const std::string& path, int64_t bytes);

// The text of a file, without its byte order mark. Errors as above.
absl::StatusOr<std::string> ReadText(const std::string& path, int64_t most_bytes);
// Removes the mark that some editors put before a text in UTF-8.
void DropByteOrderMark(std::string* text);

// The largest source file that is read: workloads, a trace.
inline constexpr int64_t kMostSourceBytes = int64_t{64} << 20;
// The largest file of keys, certificates or a token that is read.
inline constexpr int64_t kMostSecretBytes = int64_t{1} << 20;

// A reader finds the old file or the whole new one. output_file.h explains how, and what a path to a link or
// a device means. Errors as above, and ResourceExhausted when there is no space. `executable` sets the mode
// to rwxr-xr-x in place of rw-r--r-- (less the umask).
absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes, bool executable = false);

// Writes files that belong together: none is renamed before all are written.
struct FileContents {
  std::string path;
  std::string bytes;
  bool executable = false;
};
absl::Status WriteFilesAtomically(const std::vector<FileContents>& files);

}  // namespace mycc
