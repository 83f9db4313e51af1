#include "web/listen_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace mycc {
namespace {

constexpr int kBacklog = 128;

absl::Status CannotServe(const std::string& address, const char* why) {
  return absl::UnavailableError(absl::StrCat("cannot serve pages on ", address, ": ", why));
}

}  // namespace

absl::StatusOr<int> ListenOn(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || absl::StartsWith(address, "unix:")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", address, "\" is no address of pages; expected HOST:PORT, such as 127.0.0.1:50918"));
  }
  absl::string_view host = absl::string_view(address).substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(std::string(host).c_str(), address.c_str() + colon + 1, &hints, &found);
  if (error != 0) return CannotServe(address, gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> first(found, freeaddrinfo);
  const int listening = socket(first->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listening < 0) return CannotServe(address, strerror(errno));
  // A server that is started again takes its port at once.
  const int on = 1;
  setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(listening, first->ai_addr, first->ai_addrlen) != 0 || listen(listening, kBacklog) != 0) {
    const absl::Status status = CannotServe(address, strerror(errno));
    close(listening);
    return status;
  }
  return listening;
}

absl::StatusOr<std::string> AddressOf(int socket, const std::string& address) {
  sockaddr_storage bound = {};
  socklen_t length = sizeof(bound);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &length) != 0)
    return CannotServe(address, strerror(errno));
  const in_port_t port = bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                                     : reinterpret_cast<const sockaddr_in&>(bound).sin_port;
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", ntohs(port));
}

}  // namespace mycc
