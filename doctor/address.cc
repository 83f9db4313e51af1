#include "doctor/address.h"

#include "absl/strings/match.h"
#include "proto/channel.h"

namespace mycc {

std::optional<HostPort> SplitAddress(const std::string& address) {
  if (absl::StartsWith(address, "unix:") || !CheckAddress(address).ok()) return std::nullopt;
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return HostPort{.host = host, .port = address.substr(colon + 1)};
}

}  // namespace mycc
