// A listening socket of TCP. Thread rule: functions are re-entrant.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace mycc {

// Listens on "HOST:PORT" or "[V6]:PORT"; port 0 is any free one. InvalidArgument for another address,
// Unavailable with the system's words.
absl::StatusOr<int> ListenOn(const std::string& address);
// "HOST:PORT" with the port that the socket has.
absl::StatusOr<std::string> AddressOf(int socket, const std::string& address);

}  // namespace mycc
