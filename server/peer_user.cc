#include "server/peer_user.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {
namespace {

constexpr uint8_t kListening = 10;  // TCP_LISTEN, as the kernel numbers states

absl::Status KernelDoesNotTell(const char* doing) {
  return absl::FailedPreconditionError(absl::StrCat(
      "cannot ", doing, ": ", std::strerror(errno),
      "; the kernel does not tell whose connection it is; expected --listen unix:/PATH, or a token"));
}

// One end of a connection over IP, as the kernel's diagnostics name it. An IPv4 address inside an IPv6 one is
// IPv4's: the other end may be a socket of either kind, and both are found by that.
struct End {
  uint8_t family = 0;
  uint32_t address[4] = {};
  uint16_t port = 0;  // in the order of the network
};

absl::StatusOr<End> EndOf(const sockaddr_storage& address) {
  End end;
  end.family = static_cast<uint8_t>(address.ss_family);
  if (address.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof(v4));
    end.address[0] = v4.sin_addr.s_addr;
    end.port = v4.sin_port;
    return end;
  }
  if (address.ss_family != AF_INET6)
    return absl::FailedPreconditionError("the connection is neither a Unix socket's nor IP's");
  sockaddr_in6 v6;
  std::memcpy(&v6, &address, sizeof(v6));
  end.port = v6.sin6_port;
  std::memcpy(end.address, v6.sin6_addr.s6_addr, sizeof(end.address));
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    end.family = AF_INET;
    end.address[0] = end.address[3];
    end.address[1] = end.address[2] = end.address[3] = 0;
  }
  return end;
}

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return descriptor_; }

 private:
  const int descriptor_;
};

struct Query {
  nlmsghdr header;
  inet_diag_req_v2 request;
};

Query QueryFor(const End& from, const End& to) {
  Query query = {};
  query.header.nlmsg_len = sizeof(query);
  query.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  query.header.nlmsg_flags = NLM_F_REQUEST;
  query.request.sdiag_family = from.family;
  query.request.sdiag_protocol = IPPROTO_TCP;
  query.request.idiag_states = ~0U;
  inet_diag_sockid& id = query.request.id;
  id.idiag_sport = from.port;
  id.idiag_dport = to.port;
  std::memcpy(id.idiag_src, from.address, sizeof(from.address));
  std::memcpy(id.idiag_dst, to.address, sizeof(to.address));
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return query;
}

// The socket from `from` to `to`. Where there is none, the kernel answers with one that listens at `from`:
// that is somebody else's. A socket that no process holds any more counts as root's there: it has no inode.
absl::StatusOr<uid_t> OwnerIn(const inet_diag_msg& found, const End& from, const End& to) {
  const bool is_it = found.id.idiag_sport == from.port && found.id.idiag_dport == to.port &&
                     found.idiag_state != kListening && found.idiag_inode != 0;
  if (!is_it) return absl::NotFoundError("nobody holds the other end of the connection");
  return found.idiag_uid;
}

absl::StatusOr<uid_t> AskForOwner(const End& from, const End& to) {
  const Socket line(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (line.get() < 0) return KernelDoesNotTell("open the kernel's diagnostics of sockets");
  const timeval patience = {.tv_sec = 1, .tv_usec = 0};
  if (setsockopt(line.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0)
    return KernelDoesNotTell("bound the wait for the kernel's diagnostics of sockets");
  const Query query = QueryFor(from, to);
  if (send(line.get(), &query, sizeof(query), 0) != static_cast<ssize_t>(sizeof(query)))
    return KernelDoesNotTell("ask the kernel's diagnostics of sockets");
  alignas(nlmsghdr) char answer[8192];
  const ssize_t size = recv(line.get(), answer, sizeof(answer), 0);
  if (size < 0) return KernelDoesNotTell("read the kernel's diagnostics of sockets");
  nlmsghdr header;
  if (static_cast<size_t>(size) < NLMSG_LENGTH(sizeof(nlmsgerr)))
    return absl::NotFoundError("the kernel answers nothing");
  std::memcpy(&header, answer, sizeof(header));
  if (header.nlmsg_type == SOCK_DIAG_BY_FAMILY &&
      static_cast<size_t>(size) >= NLMSG_LENGTH(sizeof(inet_diag_msg))) {
    inet_diag_msg found;
    std::memcpy(&found, answer + NLMSG_HDRLEN, sizeof(found));
    return OwnerIn(found, from, to);
  }
  nlmsgerr error = {};
  if (header.nlmsg_type == NLMSG_ERROR) std::memcpy(&error, answer + NLMSG_HDRLEN, sizeof(error));
  if (error.error == -ENOENT) return absl::NotFoundError("nobody holds the other end of the connection");
  errno = error.error < 0 ? -error.error : EPROTO;
  return KernelDoesNotTell("ask the kernel's diagnostics of sockets");
}

}  // namespace

absl::StatusOr<uid_t> UserOfPeer(int descriptor) {
  sockaddr_storage own = {}, peer = {};
  socklen_t own_size = sizeof(own), peer_size = sizeof(peer);
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &own_size) != 0)
    return KernelDoesNotTell("read the address of a socket");
  if (own.ss_family == AF_UNIX) {
    ucred who = {};
    socklen_t size = sizeof(who);
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
      return KernelDoesNotTell("read the user behind a Unix socket");
    return who.uid;
  }
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0)
    return absl::NotFoundError("nobody holds the other end of the connection");
  MYCC_ASSIGN_OR_RETURN(const End here, EndOf(own));
  MYCC_ASSIGN_OR_RETURN(const End there, EndOf(peer));
  return AskForOwner(there, here);
}

}  // namespace mycc
