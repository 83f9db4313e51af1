// The right of one server to a Unix socket. gRPC replaces a socket's file when it listens, and removes it
// when it ends, whichever server's it is. The right is a lock, by flock(2), on the file SOCKET.lock, which
// ends with its process. Thread rule: a value.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace mycc {

class SocketLock {
 public:
  // AlreadyExists when another process has the lock, or answers at the socket without one (an older version,
  // another program). A socket's file that nobody serves is no obstacle. Nothing is held where the lock's
  // file cannot be made: the socket cannot be made there either, or other users share the folder.
  static absl::StatusOr<SocketLock> Take(const std::string& socket_path);
  SocketLock(SocketLock&& other) noexcept;
  SocketLock& operator=(SocketLock&&) = delete;
  ~SocketLock();  // removes the lock's file

 private:
  SocketLock(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;  // -1: nothing is held
};

}  // namespace mycc
