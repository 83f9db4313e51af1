#include "process/name_lock.h"

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/sha256.h"
#include "process/lock_file.h"

namespace mycc {
namespace {

constexpr size_t kInstanceDigits = 32;

bool IsInstance(const std::string& text) {
  return text.size() == kInstanceDigits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::string NewInstance() {
  std::random_device random;
  return absl::StrFormat("%08x%08x%08x%08x", random(), random(), random(), random());
}

absl::StatusOr<NameLock> NameLock::Take(const std::string& server, const std::string& name) {
  // Names and addresses may hold anything; files' names may not.
  const std::string path =
      LockPath(absl::StrCat("worker-", Sha256Hex(absl::StrCat(server, "\n", name)).substr(0, 16)));
  NameLock lock(OpenLockFile(path));
  if (lock.fd_ < 0) return lock;
  int taken = 0;
  while ((taken = flock(lock.fd_, LOCK_EX | LOCK_NB)) != 0 && errno == EINTR) {
  }
  if (taken == 0) {
    lock.Exchange();
  } else if (errno == EWOULDBLOCK) {
    const std::vector<LockHolder> holders = HoldersOf(path);
    return absl::AlreadyExistsError(absl::StrCat(
        "a worker ", name, " of ", server, " runs on this host",
        holders.empty() ? "" : absl::StrCat(" as ", holders[0].Words()), "; expected another --name"));
  }
  return lock;
}

void NameLock::Exchange() {
  std::string last(kInstanceDigits + 1, '\0');
  const ssize_t got = pread(fd_, last.data(), last.size(), 0);
  last.resize(got < 0 ? 0 : static_cast<size_t>(got));
  if (IsInstance(last)) replaces_ = last;
  // A full disk stores no name. Then the next process replaces no other, and waits for a lease.
  if (ftruncate(fd_, 0) == 0) (void)!pwrite(fd_, instance_.data(), instance_.size(), 0);
}

NameLock::NameLock(NameLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), instance_(other.instance_), replaces_(other.replaces_) {}

NameLock::~NameLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace mycc
