// One measurement at a time on this host's CPU, whoever takes it: timing holds the lock alone, and what would
// disturb it (building, searching) holds it shared. The lock ends with the process that holds it. Between the
// processes of one user. Thread rule: a HostLock belongs to one thread; any number of them may wait.
#pragma once

#include <string>

namespace mycc {

class HostLock {
 public:
  enum class Mode { kTiming /* alone */, kWorking /* shared with others that work */ };
  // Waits until it is held. Where the lock file cannot be made it holds nothing: fair numbers are then the
  // user's business.
  explicit HostLock(Mode mode);
  ~HostLock();
  HostLock(const HostLock&) = delete;
  HostLock& operator=(const HostLock&) = delete;

 private:
  int fd_;
};

}  // namespace mycc
