// Whole files: read in one piece, written whole or not at all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mycc {

// Errors name the path and the operating system's reason: NotFound, PermissionDenied, or FailedPrecondition
// (a folder).
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Writes beside `path`, then renames: a reader, a full disk or a crash meets the old file or the new one.
// Errors as above, and ResourceExhausted when there is no space. `executable` sets the mode to rwxr-xr-x in
// place of rw-r--r-- (less the umask).
absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes, bool executable = false);

// Files that belong together: none is renamed before all are written.
struct NewFile {
  std::string path;
  std::string bytes;
  bool executable = false;
};
absl::Status WriteFilesAtomically(const std::vector<NewFile>& files);

}  // namespace mycc
