// The lock file LOG-lock, by which one process at a time serves a log. It ends with that process.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace mycc {

class FileLock {
 public:
  // FailedPrecondition when another process holds it; the message names that process.
  static absl::StatusOr<FileLock> Acquire(const std::string& log_path);
  // Whether a process holds the lock, or ended without releasing it, since the machine was started.
  static bool IsOfThisBoot(const std::string& log_path);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();  // removes the lock's file

 private:
  FileLock(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
};

}  // namespace mycc
