#include "server/peer_listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "proto/channel.h"
#include "server/peer_user.h"

namespace mycc {
namespace {

constexpr char kUnix[] = "unix:", kDescriptor[] = "fd:";
constexpr int kBacklog = 512;
// Open connections of a user besides the server's own and root. Each costs a descriptor and some memory,
// whether or not its calls are admitted.
constexpr int kMostConnectionsOfUser = 256;
// Descriptors that connections leave to the log and to everything else.
constexpr int kDescriptorsForOthers = 64;
constexpr int kPauseMilliseconds = 100;  // while there is no descriptor for another connection

absl::Status WhyNotListening(const char* doing) {
  return absl::UnavailableError(absl::StrCat(doing, std::strerror(errno)));
}

double SteadySecondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int DescriptorLimit() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < (rlim_t{1} << 30)
             ? static_cast<int>(limit.rlim_cur)
             : 1 << 30;
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses Resolve(const std::string& host, const std::string& port) {
  addrinfo hints = {}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  return getaddrinfo(host.c_str(), port.c_str(), &hints, &list) == 0 ? Addresses(list) : nullptr;
}

// The address in numbers, as the kernel has it: "127.0.0.1", "::1".
std::string Numeric(const sockaddr* address, socklen_t size, std::string* port) {
  char host[NI_MAXHOST], service[NI_MAXSERV];
  const int error = getnameinfo(address, size, host, sizeof(host), service, sizeof(service),
                                NI_NUMERICHOST | NI_NUMERICSERV);
  *port = error == 0 ? service : "";
  return error == 0 ? host : "";
}

bool IsLoopbackAddress(const addrinfo& address) {
  std::string port;
  const std::string host = Numeric(address.ai_addr, address.ai_addrlen, &port);
  return IsLocal(absl::StrCat("[", host, "]:0")) || IsLocal(absl::StrCat(host, ":0"));
}

// -1 with errno.
int ListenAt(const addrinfo& address) {
  const int descriptor = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return -1;
  const int on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.ai_family == AF_INET6) setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  if (bind(descriptor, address.ai_addr, address.ai_addrlen) == 0 && listen(descriptor, kBacklog) == 0)
    return descriptor;
  const int error = errno;
  close(descriptor);
  errno = error;
  return -1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PeerListener>> PeerListener::Listen(const std::string& address,
                                                                   double rest_seconds) {
  std::unique_ptr<PeerListener> listener(new PeerListener(rest_seconds));
  listener->address_ = address;
  listener->stop_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (listener->stop_ < 0) return WhyNotListening("");
  absl::string_view path = address;
  if (absl::ConsumePrefix(&path, kUnix)) {
    if (absl::StartsWith(path, "///")) path.remove_prefix(2);
    MYCC_RETURN_IF_ERROR(listener->ListenUnix(std::string(path)));
    return listener;
  }
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.front() == '[') host = host.substr(1, host.size() - 2);
  MYCC_RETURN_IF_ERROR(listener->ListenLoopback(host, address.substr(colon + 1)));
  MYCC_RETURN_IF_ERROR(listener->ProbeLoopback());
  return listener;
}

// REQUIRES: the caller holds the right to the socket (socket_lock.h).
absl::Status PeerListener::ListenUnix(const std::string& path) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof(name.sun_path)) {
    return absl::UnavailableError(absl::StrCat("the path of the socket has ", path.size(),
                                               " bytes; expected at most ", sizeof(name.sun_path) - 1));
  }
  std::memcpy(name.sun_path, path.data(), path.size());
  struct stat info;
  if (lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) unlink(path.c_str());
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return WhyNotListening("");
  listening_.push_back(descriptor);
  if (bind(descriptor, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0)
    return WhyNotListening("");
  path_ = path;
  // Nobody connects before it listens.
  if (chmod(path.c_str(), 0600) != 0 || stat(path.c_str(), &info) != 0 || listen(descriptor, kBacklog) != 0)
    return WhyNotListening("");
  path_device_ = info.st_dev;
  path_inode_ = info.st_ino;
  return absl::OkStatus();
}

absl::Status PeerListener::ListenLoopback(const std::string& host, const std::string& port) {
  const Addresses addresses = Resolve(host, port);
  if (addresses == nullptr)
    return absl::UnavailableError(absl::StrCat("there is no address of the name ", host));
  std::string chosen = port;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    if (!IsLoopbackAddress(*address)) {
      return absl::UnavailableError(
          absl::StrCat(host, " is an address that other hosts reach; expected 127.0.0.1 or [::1]"));
    }
    std::string numeric_port;
    const std::string numeric = Numeric(address->ai_addr, address->ai_addrlen, &numeric_port);
    const Addresses with_port = Resolve(numeric, chosen);
    const int descriptor = with_port == nullptr ? -1 : ListenAt(*with_port);
    // A name may stand for an address that this host does not have.
    if (descriptor < 0 && !listening_.empty()) continue;
    if (descriptor < 0 && address->ai_next != nullptr && errno == EADDRNOTAVAIL) continue;
    if (descriptor < 0) return WhyNotListening("");
    listening_.push_back(descriptor);
    sockaddr_storage own = {};
    socklen_t size = sizeof(own);
    if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &size) != 0) return WhyNotListening("");
    (void)Numeric(reinterpret_cast<const sockaddr*>(&own), size, &chosen);
  }
  address_ = absl::StrCat(address_.substr(0, address_.rfind(':')), ":", chosen);
  return absl::OkStatus();
}

// Whether the kernel tells whose a connection is, tried on one of this process's own.
absl::Status PeerListener::ProbeLoopback() const {
  sockaddr_storage own = {};
  socklen_t size = sizeof(own);
  getsockname(listening_[0], reinterpret_cast<sockaddr*>(&own), &size);
  const int client = socket(own.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (client < 0) return WhyNotListening("");
  absl::Status known = absl::OkStatus();
  if (connect(client, reinterpret_cast<const sockaddr*>(&own), size) != 0) {
    known = WhyNotListening("it cannot be reached: ");
  } else {
    const int accepted = accept4(listening_[0], nullptr, nullptr, SOCK_CLOEXEC);
    known = UserOfPeer(accepted).status();
    if (accepted >= 0) close(accepted);
  }
  close(client);
  return known;
}

PeerListener::~PeerListener() {
  Stop();
  for (const int descriptor : listening_) close(descriptor);
  if (stop_ >= 0) close(stop_);
}

void PeerListener::Start(std::function<void(int)> hand_on) {
  hand_on_ = std::move(hand_on);
  thread_ = std::thread([this] { AcceptUntilStopped(); });
}

void PeerListener::Stop() {
  const uint64_t one = 1;
  if (stop_ >= 0) (void)!write(stop_, &one, sizeof(one));
  if (thread_.joinable()) thread_.join();
  struct stat info;
  const std::string path = std::exchange(path_, "");
  const bool is_ours = !path.empty() && lstat(path.c_str(), &info) == 0 && info.st_dev == path_device_ &&
                       info.st_ino == path_inode_;
  if (is_ours) unlink(path.c_str());
  for (const int descriptor : std::exchange(listening_, {})) close(descriptor);
}

void PeerListener::OpenToOthers(bool open) const {
  if (!path_.empty()) (void)chmod(path_.c_str(), open ? 0666 : 0600);
}

std::optional<uid_t> PeerListener::UserOf(absl::string_view peer) const {
  int number = -1;
  if (!absl::ConsumePrefix(&peer, kDescriptor) || !absl::SimpleAtoi(peer, &number)) return std::nullopt;
  const MutexLock lock(&mutex_);
  const auto found = connections_.find(number);
  if (found == connections_.end()) return std::nullopt;
  return found->second.user;
}

void PeerListener::AcceptUntilStopped() {
  std::vector<pollfd> waited = {{stop_, POLLIN, 0}};
  for (const int descriptor : listening_) waited.push_back({descriptor, POLLIN, 0});
  while (true) {
    if (poll(waited.data(), waited.size(), -1) < 0 && errno != EINTR) return;
    if (waited[0].revents != 0) return;
    for (size_t i = 1; i < waited.size(); ++i) {
      if (waited[i].revents != 0) Accept(waited[i].fd);
    }
  }
}

void PeerListener::Accept(int listening) {
  const int accepted = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (accepted < 0) {
    pollfd stop = {stop_, POLLIN, 0};
    const bool is_short = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (is_short) (void)poll(&stop, 1, kPauseMilliseconds);
    return;
  }
  const absl::StatusOr<uid_t> user = UserOfPeer(accepted);
  if (!user.ok()) {
    close(accepted);
    return;
  }
  const int on = 1;
  if (path_.empty()) setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const int number = Number(accepted, *user);
  if (number >= 0) hand_on_(number);
}

bool PeerListener::HasTooMany(uid_t user) const {
  if (user == 0 || user == geteuid()) return false;
  int open = 0;
  for (const auto& [number, connection] : connections_) {
    struct stat info;
    if (connection.user == user && fstat(number, &info) == 0 && S_ISSOCK(info.st_mode) &&
        info.st_ino == connection.inode) {
      ++open;
    }
  }
  return open >= kMostConnectionsOfUser;
}

// The rest begins when the end is noticed, which is when somebody else's connection gets the number.
bool PeerListener::MayHave(uid_t user, Connection* ended) const {
  if (ended->user == user) return true;
  const double now = SteadySecondsNow();
  if (!ended->seen_ended) ended->seen_ended = now;
  return now - *ended->seen_ended >= rest_seconds_;
}

int PeerListener::Number(int descriptor, uid_t user) {
  struct stat info;
  const MutexLock lock(&mutex_);
  const int limit = DescriptorLimit() - kDescriptorsForOthers;
  int number = descriptor;
  // Numbers that were tried stay taken until one is found: dup gives the next one then.
  std::vector<int> tried;
  while (number >= 0) {
    const auto found = connections_.find(number);
    if (found == connections_.end() || MayHave(user, &found->second)) break;
    tried.push_back(number);
    number = fcntl(descriptor, F_DUPFD_CLOEXEC, number + 1);
  }
  const bool is_taken = number >= 0 && number < limit && fstat(number, &info) == 0 && !HasTooMany(user);
  if (is_taken) {
    connections_[number] = {user, info.st_ino};
  } else if (number >= 0) {
    tried.push_back(number);
  }
  for (const int other : tried) close(other);
  return is_taken ? number : -1;
}

}  // namespace mycc
