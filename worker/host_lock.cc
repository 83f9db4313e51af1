#include "worker/host_lock.h"

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "worker/lock_file.h"

namespace mycc {

HostLock::HostLock(Mode mode, const std::string& device) : fd_(OpenLockFile(LockPath(device))) {
  if (fd_ < 0) return;
  while (flock(fd_, mode == Mode::kTiming ? LOCK_EX : LOCK_SH) != 0 && errno == EINTR) {
  }
}

HostLock::~HostLock() {
  if (fd_ >= 0) close(fd_);
}

std::string StoppedHolderOf(const std::string& device) {
  const std::string path = LockPath(device);
  for (const LockHolder& holder : HoldersOf(path)) {
    if (!holder.is_stopped) continue;
    return absl::StrCat("its lock ", path, " is held by ", holder.Words(),
                        "; expected that it goes on (kill -CONT ", holder.pid, ") or ends");
  }
  return "";
}

}  // namespace mycc
