// Writes a file with a secret: readable by its owner alone from the moment it exists, and complete or absent.
// Thread rule: functions are re-entrant.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mycc {

// Replaces what stands there, which is on the disk when it returns. Errors name the path and the system's
// reason. A link at `path` is replaced, never followed.
absl::Status WriteSecretFile(const std::string& path, absl::string_view bytes);
// Makes a folder that its owner alone enters; one that is there already must be the caller's own.
absl::Status MakePrivateFolder(const std::string& path);

}  // namespace mycc
