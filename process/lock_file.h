// Lock files by which the mycc-tune processes of one user on a host take turns. They are locked with
// flock(2), so a lock ends with its process. Thread rule: re-entrant.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mycc {

// mycc-tune-NAME-UID.lock in XDG_RUNTIME_DIR, or in /tmp where that cannot be written.
std::string LockPath(const std::string& name);
// A descriptor of the file, made where it is missing and closed with the program; -1: it cannot be opened.
int OpenLockFile(const std::string& path);

// A process that has a file locked.
struct LockHolder {
  pid_t pid = 0;
  std::string program;      // as the system calls it
  bool is_stopped = false;  // by a signal, or by a debugger: it gives nothing back before it goes on

  // "process 71 (mycc-tune), which is stopped".
  std::string Words() const;
};
// The holders that the system tells of; processes of other containers and users are not among them.
std::vector<LockHolder> HoldersOf(const std::string& path);

// The processes with a flock(2) lock on the inode, as /proc/locks has them. A process that waits holds none.
std::vector<pid_t> PidsInLocks(const std::string& locks, uint64_t inode);

}  // namespace mycc
