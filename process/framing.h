// Sends and receives messages over a local stream socket: four bytes of length, then the bytes. Thread rule:
// each end has one reader and one writer.
#pragma once

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mycc {

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kNoDeadline = Deadline::max();
Deadline After(double seconds);
// For poll(2): milliseconds until the deadline, rounded up, 0 when it passed, -1 for kNoDeadline.
int PollMilliseconds(Deadline deadline);

// Unavailable when the other end is closed, InvalidArgument when the message is too long for the other side
// to accept, DeadlineExceeded.
absl::Status WriteMessage(int fd, const std::string& message, Deadline deadline = kNoDeadline);
// Unavailable when the other end was closed, DeadlineExceeded, DataLoss for bytes that are no message.
absl::StatusOr<std::string> ReadMessage(int fd, Deadline deadline = kNoDeadline);

}  // namespace mycc
