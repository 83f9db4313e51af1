// A lock on a device of this host, so that one measurement runs on it at a time. Timing holds it exclusively;
// work that would disturb timing (on the CPU: building, searching) holds it shared. It works between the
// processes of one user and ends with the process. Thread rule: a HostLock belongs to one thread; any number
// of threads may wait.
#pragma once

#include <functional>
#include <string>

namespace mycc {

inline constexpr char kCpuLock[] = "cpu";

class HostLock {
 public:
  enum class Mode { kTiming /* alone */, kWorking /* shared with others that work */ };
  // Waits until the lock is held, or `gives_up` returns true; it is called now and then while waiting; null:
  // never. `device` is part of a file name: kCpuLock, or a GPU's UUID. Where the lock file cannot be made,
  // nothing is held, and fair timing is up to the user.
  explicit HostLock(Mode mode, const std::string& device = kCpuLock,
                    const std::function<bool()>& gives_up = nullptr);
  ~HostLock();
  HostLock(const HostLock&) = delete;
  HostLock& operator=(const HostLock&) = delete;

  bool gave_up() const { return gave_up_; }

 private:
  int fd_;
  bool gave_up_ = false;
};

// Does `work` with the device's lock held shared for its first `most_seconds`. So work that never ends,
// since it waits for a stopped process, does not keep others from timing for ever. Thread rule:
// re-entrant.
void WorkQuietly(const std::function<void()>& work, double most_seconds,
                 const std::string& device = kCpuLock);

// A description of the stopped process that holds the device's lock, so that nothing is timed there; empty:
// there is none, or the system does not tell. Thread rule: re-entrant.
std::string StoppedHolderOf(const std::string& device);

}  // namespace mycc
