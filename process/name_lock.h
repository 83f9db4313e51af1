// The lock file of a worker's name, so that one process of this user on this host has the name at a time. It
// holds the instance id of the process that had it last: the next process tells the server that this one has
// ended (RegisterRequest.replaces). Thread rule: a value.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace mycc {

// Names a process of a worker: 32 hexadecimal digits, random.
std::string NewInstance();

class NameLock {
 public:
  // AlreadyExists, with the process, when a live one has the name. Nothing is held, or known, where the lock
  // file cannot be made: then only the server distinguishes two processes of one name.
  static absl::StatusOr<NameLock> Take(const std::string& server, const std::string& name);
  NameLock(NameLock&& other) noexcept;
  NameLock& operator=(NameLock&&) = delete;
  ~NameLock();

  const std::string& instance() const { return instance_; }
  const std::string& replaces() const { return replaces_; }  // empty: unknown

 private:
  explicit NameLock(int fd) : fd_(fd), instance_(NewInstance()) {}
  // The file's instance becomes `replaced`, and this process's instance the file's.
  void Exchange();

  int fd_;
  std::string instance_, replaces_;
};

}  // namespace mycc
