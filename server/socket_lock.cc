#include "server/socket_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace mycc {
namespace {

absl::Status ServedByAnother() { return absl::AlreadyExistsError("another server listens there"); }

// Whether a process listens at the socket, also one that is stopped or overloaded.
bool IsServed(const std::string& socket_path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof(address.sun_path)) return false;  // gRPC refuses it, with its reason
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return false;
  const bool connected =
      connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  const bool is_served = connected || errno == EAGAIN;  // its queue of connections is full
  close(descriptor);
  return is_served;
}

// Whether `path` still names the file of the descriptor: its last holder may have removed it between our open
// and our lock.
bool IsStillNamed(const std::string& path, int descriptor) {
  struct stat held, named;
  return fstat(descriptor, &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

}  // namespace

absl::StatusOr<SocketLock> SocketLock::Take(const std::string& socket_path) {
  const std::string path = socket_path + ".lock";
  while (true) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      close(descriptor);
      return ServedByAnother();
    }
    SocketLock lock(path, descriptor);
    if (descriptor >= 0 && !IsStillNamed(path, descriptor)) {
      lock.path_.clear();  // not ours to remove
      continue;
    }
    if (IsServed(socket_path)) return ServedByAnother();
    return lock;
  }
}

SocketLock::SocketLock(SocketLock&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

SocketLock::~SocketLock() {
  if (descriptor_ < 0) return;
  if (!path_.empty()) unlink(path_.c_str());
  close(descriptor_);
}

}  // namespace mycc
