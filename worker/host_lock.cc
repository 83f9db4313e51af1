#include "worker/host_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

std::string LockPath(const std::string& device) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string directory = runtime != nullptr && access(runtime, W_OK) == 0 ? runtime : "/tmp";
  return absl::StrCat(directory, "/mycc-tune-", device, "-", getuid(), ".lock");
}

}  // namespace

HostLock::HostLock(Mode mode, const std::string& device)
    : fd_(open(LockPath(device).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
  if (fd_ < 0) return;
  while (flock(fd_, mode == Mode::kTiming ? LOCK_EX : LOCK_SH) != 0 && errno == EINTR) {
  }
}

HostLock::~HostLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace mycc
