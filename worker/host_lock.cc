#include "worker/host_lock.h"

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
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

void WorkQuietly(const std::function<void()>& work, double most_seconds, const std::string& device) {
  std::optional<HostLock> quiet(std::in_place, HostLock::Mode::kWorking, device);
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                             std::chrono::duration<double>(most_seconds));
  Mutex mutex;
  CondVar changed;
  bool is_done = false;
  std::thread watch([&] {
    const MutexLock lock(&mutex);
    while (!is_done && changed.WaitUntil(&mutex, end)) {
    }
    quiet.reset();
  });
  work();
  {
    const MutexLock lock(&mutex);
    is_done = true;
    changed.NotifyAll();
  }
  watch.join();
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
