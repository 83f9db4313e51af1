// A file that is written as a stream and appears whole or not at all: beside its name first, then renamed.
#pragma once

#include <fstream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mycc {

class NewFile {
 public:
  static absl::StatusOr<NewFile> Begin(const std::string& path);
  NewFile(NewFile&&) = default;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();  // leaves nothing, unless committed

  std::ostream& stream() { return *stream_; }
  // Takes the place of what stood under the name, durably.
  absl::Status Commit();

 private:
  NewFile(std::string path, std::string partial, std::unique_ptr<std::ofstream> stream)
      : path_(std::move(path)), partial_(std::move(partial)), stream_(std::move(stream)) {}

  std::string path_;
  std::string partial_;
  std::unique_ptr<std::ofstream> stream_;  // null once committed
};

// Waits until the disk has a file's contents.
absl::Status SyncFile(const std::string& path);

}  // namespace mycc
