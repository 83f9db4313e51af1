// The worker's folders. Scratch space is private to the process and removed with it; leftovers of a killed
// worker are removed by the next one. The cache outlives workers and holds only files that can be made again.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace mycc {

// Unlike a TemporaryFolder, it has a name by which other processes find it, and a lock that tells them
// whether it is in use.
class ScratchFolder {
 public:
  // Under TMPDIR or /tmp.
  static absl::StatusOr<ScratchFolder> Create();
  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  const std::string& path() const { return path_; }

 private:
  ScratchFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_;  // on a file in the folder: held by the process that uses it, and by children that survive it
};

// Makes a folder that belongs to whom its parent folder belongs to: confined children may write to both, or
// to neither.
absl::Status MakeFolder(const std::string& path);

// XDG_CACHE_HOME/mycc/NAME or ~/.cache/mycc/NAME, made where it is missing.
absl::StatusOr<std::string> CacheFolder(const std::string& name);

// Removes those of a cache's files that were written or used (MarkUsed) longest ago, until the rest have
// `most_bytes` at most; the one used last stays, and so does a file that cannot be removed.
void TrimCache(const std::string& folder, int64_t most_bytes);
void MarkUsed(const std::string& path);

}  // namespace mycc
