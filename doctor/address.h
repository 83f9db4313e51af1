// Takes addresses apart. Thread rule: pure.
#pragma once

#include <optional>
#include <string>

namespace mycc {

struct HostPort {
  std::string host, port;  // the host without the brackets of IPv6
};
// None of a Unix socket, and of what is no address.
std::optional<HostPort> SplitAddress(const std::string& address);

}  // namespace mycc
