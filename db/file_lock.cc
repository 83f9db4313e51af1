#include "db/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

absl::Status SystemError(const std::string& path) {
  const auto code = errno == EACCES || errno == EROFS ? absl::StatusCode::kPermissionDenied
                    : errno == ENOSPC                 ? absl::StatusCode::kResourceExhausted
                                                      : absl::StatusCode::kFailedPrecondition;
  const bool no_folder = errno == ENOENT;  // the lock's file itself is made
  return absl::Status(code, absl::StrCat(path, ": cannot lock the log: ",
                                         no_folder ? "its folder does not exist" : std::strerror(errno)));
}

// The lock's file names its holder: the process, and the start of the machine on which it ran.
struct Holder {
  std::string pid, boot;
};

Holder HolderOf(const std::string& path) {
  Holder holder;
  std::ifstream(path) >> holder.pid >> holder.boot;
  return holder;
}

// The kernel's random name for this start of the machine; empty where it has none.
std::string BootId() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

// Whether `path` still names the file that `descriptor` holds: its last holder may have removed it between
// our open and our lock.
bool IsStillNamed(const std::string& path, int descriptor) {
  struct stat held, named;
  return fstat(descriptor, &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

}  // namespace

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& log_path) {
  const std::string path = log_path + "-lock";
  while (true) {
    const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0) return SystemError(path);
    FileLock lock(path, descriptor);
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      lock.path_.clear();  // not ours to remove
      if (errno != EWOULDBLOCK) return SystemError(path);
      const std::string pid = HolderOf(path).pid;
      return absl::FailedPreconditionError(absl::StrCat(log_path, ": is served by ",
                                                        pid.empty() ? "another process" : "process " + pid,
                                                        "; a log has one server at a time"));
    }
    if (!IsStillNamed(path, descriptor)) {
      lock.path_.clear();
      continue;
    }
    const std::string holder = absl::StrCat(getpid(), " ", BootId(), "\n");
    if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, holder.data(), holder.size(), 0) < 0)
      return SystemError(path);
    return lock;
  }
}

bool FileLock::IsOfThisBoot(const std::string& log_path) {
  const std::string boot = BootId();
  return !boot.empty() && HolderOf(log_path + "-lock").boot == boot;
}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  if (!path_.empty()) unlink(path_.c_str());
  close(descriptor_);
}

}  // namespace mycc
