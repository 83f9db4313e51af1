#include "base/temporary_folder.h"

#include <stdlib.h>

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/os_error.h"

namespace mycc {

absl::StatusOr<TemporaryFolder> TemporaryFolder::Create() {
  const char* const chosen = getenv("TMPDIR");
  return CreateIn(chosen != nullptr && *chosen != '\0' ? chosen : "/tmp");
}

absl::StatusOr<TemporaryFolder> TemporaryFolder::CreateIn(const std::string& place) {
  std::string path = absl::StrCat(place, "/mycc-XXXXXX");
  if (mkdtemp(path.data()) != nullptr) return TemporaryFolder(std::move(path));
  return OsError("make a folder for temporary files in", place);
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace mycc
