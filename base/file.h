// Whole files: read in one piece, written whole or not at all.
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
// (a folder). InvalidArgument when there is more than `most_bytes`, of which no more is read than that.
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     int64_t most_bytes = std::numeric_limits<int64_t>::max());
// The first bytes of a file, shorter when the file is.
absl::StatusOr<std::string> ReadBeginning(const std::string& path, int64_t bytes);

// What a person writes, a text: without a byte order mark.
absl::StatusOr<std::string> ReadText(const std::string& path, int64_t most_bytes);
// Takes away what some editors put before a text in UTF-8.
void DropByteOrderMark(std::string* text);

// The most that is read of what people write by hand or a tool writes of it: workloads, a trace.
inline constexpr int64_t kMostSourceBytes = int64_t{64} << 20;
// Of keys, certificates and tokens.
inline constexpr int64_t kMostSecretBytes = int64_t{1} << 20;

// Where a file is written to, and that nobody meets half of one: see output_file.h. Errors as above, and
// ResourceExhausted when there is no space. `executable` sets the mode to rwxr-xr-x in place of rw-r--r--
// (less the umask).
absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes, bool executable = false);

// Files that belong together: none is renamed before all are written.
struct FileContents {
  std::string path;
  std::string bytes;
  bool executable = false;
};
absl::Status WriteFilesAtomically(const std::vector<FileContents>& files);

}  // namespace mycc
