#include "db/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {

absl::StatusOr<NewFile> NewFile::Begin(const std::string& path) {
  std::string partial = absl::StrCat(path, ".partial-", getpid());
  auto stream = std::make_unique<std::ofstream>(partial, std::ios::binary | std::ios::trunc);
  if (!*stream) {
    return absl::PermissionDeniedError(absl::StrCat(path, ": cannot be written: ", std::strerror(errno)));
  }
  return NewFile(path, std::move(partial), std::move(stream));
}

absl::Status NewFile::Commit() {
  stream_->close();
  if (!*stream_)
    return absl::ResourceExhaustedError(absl::StrCat(path_, ": cannot be written: ", std::strerror(errno)));
  MYCC_RETURN_IF_ERROR(SyncFile(partial_));
  if (std::rename(partial_.c_str(), path_.c_str()) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(path_, ": cannot be written: ", std::strerror(errno)));
  }
  stream_.reset();
  return absl::OkStatus();
}

NewFile::~NewFile() {
  if (stream_ != nullptr) std::remove(partial_.c_str());
}

absl::Status SyncFile(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  if (synced) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(path, ": cannot be written: ", std::strerror(error)));
}

}  // namespace mycc
