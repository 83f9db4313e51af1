// A temporary folder that is removed with its object. Thread rule: a value that moves; for one thread.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace mycc {

class TemporaryFolder {
 public:
  // In $TMPDIR, or /tmp. Errors name the place and the operating system's reason.
  static absl::StatusOr<TemporaryFolder> Create();
  static absl::StatusOr<TemporaryFolder> CreateIn(const std::string& place);

  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  // Removes the folder with everything in it.
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace mycc
