#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {
namespace {

absl::Status OsError(const std::string& doing, const std::string& path) {
  const int error = errno;
  const std::string message = absl::StrCat("cannot ", doing, " `", path, "`: ", strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR: return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS: return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return absl::ResourceExhaustedError(message);
    default: return absl::FailedPreconditionError(message);
  }
}

// Closes on scope exit; Close() tells whether the data reached the file.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool Close() {
    const int fd = fd_;
    fd_ = -1;
    return close(fd) == 0;
  }

 private:
  int fd_;
};

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(written);
  }
  return true;
}

// Where a file is written before it takes its name.
std::string PartOf(const std::string& path) { return absl::StrCat(path, ".", getpid(), ".part"); }

absl::Status WriteBeside(const std::string& path, std::string_view bytes, bool executable) {
  const std::string part = PartOf(path);
  Descriptor file(open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, executable ? 0777 : 0666));
  if (file.get() < 0) return OsError("write", path);
  if (WriteAll(file.get(), bytes) && file.Close()) return absl::OkStatus();
  const absl::Status status = OsError("write", path);
  unlink(part.c_str());
  return status;
}

absl::Status Rename(const std::string& path) {
  const std::string part = PartOf(path);
  if (rename(part.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const absl::Status status = OsError("write", path);
  unlink(part.c_str());
  return status;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return OsError("open", path);
  std::string bytes;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return OsError("read", path);
    if (got == 0) return bytes;
    bytes.append(buffer, got);
  }
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes, bool executable) {
  MYCC_RETURN_IF_ERROR(WriteBeside(path, bytes, executable));
  return Rename(path);
}

absl::Status WriteFilesAtomically(const std::vector<NewFile>& files) {
  absl::Status status;
  for (const NewFile& file : files) {
    if (status.ok()) status = WriteBeside(file.path, file.bytes, file.executable);
  }
  for (const NewFile& file : files) {
    if (status.ok()) status = Rename(file.path);
    if (!status.ok()) unlink(PartOf(file.path).c_str());
  }
  return status;
}

}  // namespace mycc
