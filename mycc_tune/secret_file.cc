#include "mycc_tune/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "base/os_error.h"
#include "base/random_word.h"

namespace mycc {
namespace {

bool WriteAllOf(int descriptor, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

absl::Status WriteSecretFile(const std::string& path, absl::string_view bytes) {
  const std::string partial = absl::StrCat(path, ".", RandomWord(), ".part");
  const int descriptor = open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return OsError("write", path);
  bool is_written = WriteAllOf(descriptor, bytes) && fsync(descriptor) == 0;
  int error = errno;
  if (close(descriptor) != 0 && is_written) {
    is_written = false;
    error = errno;
  }
  if (is_written && rename(partial.c_str(), path.c_str()) == 0) return absl::OkStatus();
  if (is_written) error = errno;
  unlink(partial.c_str());
  errno = error;
  return OsError("write", path);
}

absl::Status MakePrivateFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return absl::OkStatus();
  if (errno != EEXIST) return OsError("make", path);
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return OsError("look at", path);
  if (S_ISDIR(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 0022) == 0)
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("`", path, "` is no folder that this user alone can write to; expected another place"));
}

}  // namespace mycc
