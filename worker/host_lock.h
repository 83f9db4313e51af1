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
  // Waits until it is held, or `gives_up`, which is asked now and then while it waits; null: never. `device`
  // is a file name's part: kCpuLock, or a GPU's UUID. It holds nothing where the lock file cannot be made:
  // fair numbers are then the user's business.
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

// Does `work` with the device's lock held shared, for the first `most_seconds` of it: work that does not end,
// since it waits for a process that is stopped, must not keep others from timing for ever. Thread rule:
// re-entrant.
void WorkQuietly(const std::function<void()>& work, double most_seconds,
                 const std::string& device = kCpuLock);

// The process that holds the device's lock and is stopped, so that nothing is timed there, in words for
// people; empty: there is none, or the system does not tell. Thread rule: re-entrant.
std::string StoppedHolderOf(const std::string& device);

}  // namespace mycc
