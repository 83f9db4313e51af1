#include "process/host_lock.h"

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "process/lock_file.h"

namespace mycc {

namespace {

constexpr auto kAskEvery = std::chrono::milliseconds(50);

// Waits until the file is locked, or cannot be.
void Lock(int fd, int how) {
  while (flock(fd, how) != 0 && errno == EINTR) {
  }
}

// State shared by a thread that waits for a lock and the thread that may give up the wait.
struct Wait {
  Mutex mutex;
  CondVar changed;
  bool is_over ABSL_GUARDED_BY(mutex) = false;
  bool is_given_up ABSL_GUARDED_BY(mutex) = false;
};

// False when it was given up: then the descriptor is closed as soon as the lock is held. Nothing else ends a
// wait for flock(2), so a thread of its own waits, which is left behind.
bool LockUnless(const std::function<bool()>& gives_up, int fd, int how) {
  const auto wait = std::make_shared<Wait>();
  std::thread([wait, fd, how] {
    Lock(fd, how);
    const MutexLock lock(&wait->mutex);
    wait->is_over = true;
    wait->changed.NotifyAll();
    if (wait->is_given_up) close(fd);
  }).detach();
  const MutexLock lock(&wait->mutex);
  while (!wait->is_over) {
    if (gives_up()) {
      wait->is_given_up = true;
      return false;
    }
    wait->changed.WaitUntil(&wait->mutex, std::chrono::steady_clock::now() + kAskEvery);
  }
  return true;
}

}  // namespace

HostLock::HostLock(Mode mode, const std::string& device, const std::function<bool()>& gives_up)
    : fd_(OpenLockFile(LockPath(device))) {
  if (fd_ < 0) return;
  const int how = mode == Mode::kTiming ? LOCK_EX : LOCK_SH;
  if (gives_up == nullptr) {
    Lock(fd_, how);
  } else if (flock(fd_, how | LOCK_NB) != 0 && !LockUnless(gives_up, fd_, how)) {
    fd_ = -1;
    gave_up_ = true;
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
