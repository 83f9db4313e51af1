#include "process/framing.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {
namespace {

constexpr uint32_t kMaxFrameBytes = 64u << 20;

absl::Status ReadExactly(int fd, char* to, size_t size, Deadline deadline) {
  while (size > 0) {
    pollfd ready{fd, POLLIN, 0};
    const int events = poll(&ready, 1, PollMilliseconds(deadline));
    if (events == 0) return absl::DeadlineExceededError("no answer in time");
    if (events < 0) {
      if (errno == EINTR) continue;
      return absl::ErrnoToStatus(errno, "waiting for a message");
    }
    const ssize_t got = read(fd, to, size);
    if (got == 0) return absl::UnavailableError("the other end was closed");
    if (got < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return absl::ErrnoToStatus(errno, "reading a message");
    }
    to += got;
    size -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

}  // namespace

Deadline After(double seconds) {
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                std::chrono::duration<double>(seconds));
}

int PollMilliseconds(Deadline deadline) {
  if (deadline == kNoDeadline) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return left <= 0 ? 0 : left > INT_MAX ? INT_MAX : static_cast<int>(left);
}

absl::Status WriteMessage(int fd, const std::string& message, Deadline deadline) {
  if (message.size() > kMaxFrameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of ", message.size(), " bytes; at most ", kMaxFrameBytes, " are sent"));
  }
  const uint32_t size = static_cast<uint32_t>(message.size());
  std::string framed(reinterpret_cast<const char*>(&size), sizeof(size));
  framed += message;
  for (size_t sent = 0; sent < framed.size();) {
    pollfd ready{fd, POLLOUT, 0};
    if (poll(&ready, 1, PollMilliseconds(deadline)) == 0)
      return absl::DeadlineExceededError("the other end does not listen");
    const ssize_t got = send(fd, framed.data() + sent, framed.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0 && errno == EPIPE) return absl::UnavailableError("the other end was closed");
    if (got < 0) return absl::ErrnoToStatus(errno, "writing a message");
    sent += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadMessage(int fd, Deadline deadline) {
  uint32_t size = 0;
  MYCC_RETURN_IF_ERROR(ReadExactly(fd, reinterpret_cast<char*>(&size), sizeof(size), deadline));
  if (size > kMaxFrameBytes) return absl::DataLossError("not a message: its length is out of range");
  std::string message(size, '\0');
  MYCC_RETURN_IF_ERROR(ReadExactly(fd, message.data(), size, deadline));
  return message;
}

}  // namespace mycc
