// The user behind a connection, as the kernel has it: over IPv4, IPv6 and Unix sockets, of this user and of
// others.
#include "server/peer_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <mutex>

#include "base/temporary_folder.h"
#include "server/peer_user.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kOtherUser = 65533;

// A client's socket for the address, not connected yet.
int SocketFor(const std::string& address) {
  return socket(address.starts_with("unix:") ? AF_UNIX
                : address.starts_with("[")   ? AF_INET6
                                             : AF_INET,
                SOCK_STREAM, 0);
}

bool Connect(int client, const std::string& address) {
  if (address.starts_with("unix:")) {
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    address.copy(name.sun_path, sizeof(name.sun_path) - 1, 5);
    return connect(client, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0;
  }
  const auto port = static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  if (address.starts_with("[")) {
    sockaddr_in6 v6 = {};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    v6.sin6_addr = in6addr_loopback;
    return connect(client, reinterpret_cast<const sockaddr*>(&v6), sizeof(v6)) == 0;
  }
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connect(client, reinterpret_cast<const sockaddr*>(&v4), sizeof(v4)) == 0;
}

// A connected socket; -1 when it cannot be.
int ConnectTo(const std::string& address) {
  const int client = SocketFor(address);
  if (Connect(client, address)) return client;
  close(client);
  return -1;
}

// From now on this number is the lowest that is free. Returns the descriptors that took the lower ones.
std::vector<int> MakeLowestFree(int number) {
  std::vector<int> lower;
  int next = dup(STDERR_FILENO);
  for (; next < number; next = dup(STDERR_FILENO)) lower.push_back(next);
  close(next);
  close(number);
  return lower;
}

// A process of another user that holds connections until it is told to end. REQUIRES: this one is root's.
class OtherUsersProcess {
 public:
  explicit OtherUsersProcess(const std::string& address, int connections = 1) {
    EXPECT_EQ(pipe(told_), 0);
    EXPECT_EQ(pipe(done_), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(told_[1]);
      char byte = 1;
      const bool is_other = setresgid(kOtherUser, kOtherUser, kOtherUser) == 0 &&
                            setresuid(kOtherUser, kOtherUser, kOtherUser) == 0;
      for (int i = 0; i < connections && is_other; ++i) byte = ConnectTo(address) >= 0 ? 1 : 0;
      (void)!write(done_[1], &byte, 1);
      (void)!read(told_[0], &byte, 1);
      _exit(is_other ? 0 : 1);
    }
    char byte = 0;
    EXPECT_EQ(read(done_[0], &byte, 1), 1);
    connected_ = byte == 1;
  }
  ~OtherUsersProcess() { End(); }
  void End() {
    if (pid_ == 0) return;
    for (const int end : {told_[0], told_[1], done_[0], done_[1]}) close(end);
    int status = 0;
    waitpid(pid_, &status, 0);
    EXPECT_EQ(status, 0);
    pid_ = 0;
  }
  bool connected() const { return connected_; }

 private:
  int told_[2], done_[2];
  pid_t pid_ = 0;
  bool connected_ = false;
};

class PeerListenerTest : public ::testing::TestWithParam<const char*> {
 protected:
  PeerListenerTest() : folder_(TemporaryFolder::Create().value()) {}

  void Listen(double rest_seconds = PeerListener::kRestSeconds) {
    std::string address = GetParam();
    if (address == "unix") address = "unix:" + folder_.path() + "/socket";
    auto listener = PeerListener::Listen(address, rest_seconds);
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    listener_->OpenToOthers(true);
    chmod(folder_.path().c_str(), 0755);
    listener_->Start([this](int descriptor) {
      const std::lock_guard lock(mutex_);
      handed_.push_back(descriptor);
    });
  }
  // The descriptors that were handed on, once there are `count`.
  std::vector<int> Handed(size_t count) {
    for (int i = 0; i < 500; ++i) {
      {
        const std::lock_guard lock(mutex_);
        if (handed_.size() >= count) return handed_;
      }
      usleep(10000);
    }
    ADD_FAILURE() << "no " << count << " connections";
    return std::vector<int>(count, -1);
  }
  std::optional<uid_t> UserOf(int descriptor) {
    return listener_->UserOf("fd:" + std::to_string(descriptor));
  }

  const TemporaryFolder folder_;
  std::mutex mutex_;
  std::vector<int> handed_;
  std::unique_ptr<PeerListener> listener_;
};

TEST_P(PeerListenerTest, KnowsItsOwnUser) {
  Listen();
  const int client = ConnectTo(listener_->address());
  ASSERT_GE(client, 0);
  EXPECT_EQ(UserOf(Handed(1)[0]), geteuid());
  for (const char* name : {"fd:", "fd:x", "fd:-1", "fd:100000", "ipv4:127.0.0.1:80", ""})
    EXPECT_FALSE(listener_->UserOf(name)) << name;
  close(client);
}

TEST_P(PeerListenerTest, KnowsAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "a process of another user takes root";
  Listen();
  const OtherUsersProcess other(listener_->address());
  ASSERT_TRUE(other.connected());
  EXPECT_EQ(UserOf(Handed(1)[0]), kOtherUser);
}

// The number of a connection that has ended is free. Were it given to another user's, a call of the first one
// that is still looked at would count as that user's.
TEST_P(PeerListenerTest, ANumberIsOneUsersAlone) {
  if (geteuid() != 0) GTEST_SKIP() << "a process of another user takes root";
  Listen();
  OtherUsersProcess other(listener_->address());
  const int first = Handed(1)[0];
  const int client = SocketFor(listener_->address());
  other.End();
  const std::vector<int> lower = MakeLowestFree(first);
  ASSERT_TRUE(Connect(client, listener_->address()));
  const int second = Handed(2)[1];
  EXPECT_NE(first, second);
  EXPECT_EQ(UserOf(first), kOtherUser);
  EXPECT_EQ(UserOf(second), geteuid());
  close(client);
  close(second);
  for (const int descriptor : lower) close(descriptor);
  const OtherUsersProcess again(listener_->address());
  EXPECT_EQ(UserOf(Handed(3)[2]), kOtherUser);
}

TEST_P(PeerListenerTest, AnotherUserHasABoundedNumberOfConnections) {
  if (geteuid() != 0) GTEST_SKIP() << "a process of another user takes root";
  Listen();
  const OtherUsersProcess many(listener_->address(), 300);
  const int own = ConnectTo(listener_->address());
  ASSERT_GE(own, 0);
  for (int i = 0; i < 500 && UserOf(Handed(1).back()) != geteuid(); ++i) usleep(10000);
  const std::vector<int> handed = Handed(1);
  EXPECT_EQ(UserOf(handed.back()), geteuid()) << "this one is admitted";
  EXPECT_EQ(handed.size(), 257u);
  close(own);
  for (const int descriptor : handed) close(descriptor);
}

// A user who once had all the numbers would keep everybody else out for as long as the server runs.
TEST_P(PeerListenerTest, NumbersThatHaveRestedAreFreeForOthers) {
  if (geteuid() != 0) GTEST_SKIP() << "a process of another user takes root";
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  const int lowest = dup(STDERR_FILENO);
  close(lowest);
  few.rlim_cur = static_cast<rlim_t>(lowest) + 64 + 50;  // 64 are not for connections
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  Listen(/*rest_seconds=*/0);
  std::vector<int> ended;
  {
    const OtherUsersProcess many(listener_->address(), 100);
    while (ended.size() < Handed(20).size()) {  // until no more are handed on
      ended = Handed(20);
      usleep(200000);
    }
  }
  const std::vector<int> lower = MakeLowestFree(ended[0]);
  for (size_t i = 1; i < ended.size(); ++i) close(ended[i]);
  const int own = ConnectTo(listener_->address());
  ASSERT_GE(own, 0);
  const auto has_own = [this] {
    const std::vector<int> all = Handed(1);
    return std::ranges::any_of(all, [this](int number) { return UserOf(number) == geteuid(); });
  };
  for (int i = 0; i < 500 && !has_own(); ++i) usleep(10000);
  EXPECT_TRUE(has_own());
  close(own);
  const std::vector<int> all = Handed(ended.size() + 1);
  for (size_t i = ended.size(); i < all.size(); ++i) close(all[i]);
  for (const int descriptor : lower) close(descriptor);
  setrlimit(RLIMIT_NOFILE, &before);
}

INSTANTIATE_TEST_SUITE_P(Addresses, PeerListenerTest, ::testing::Values("127.0.0.1:0", "[::1]:0", "unix"),
                         [](const auto& info) {
                           return std::string(info.param)[0] == 'u' ? "Unix"
                                  : info.param[0] == '['            ? "V6"
                                                                    : "V4";
                         });

// The kernel counts a connection whose process has closed it as root's.
TEST(PeerUserTest, AClosedConnectionIsNobodys) {
  auto listener = PeerListener::Listen("127.0.0.1:0");
  ASSERT_TRUE(listener.ok()) << listener.status();
  std::promise<int> accepted;
  (*listener)->Start([&accepted](int descriptor) { accepted.set_value(descriptor); });
  const int client = ConnectTo((*listener)->address());
  const int server = accepted.get_future().get();
  EXPECT_EQ(*UserOfPeer(server), geteuid());
  close(client);
  EXPECT_TRUE(absl::IsNotFound(UserOfPeer(server).status())) << UserOfPeer(server).status();
  close(server);
}

TEST(PeerListenerAddressTest, OthersAreRefused) {
  EXPECT_THAT(std::string(PeerListener::Listen("0.0.0.0:0").status().message()),
              HasSubstr("other hosts reach"));
  const std::string path(200, 'p');
  EXPECT_THAT(std::string(PeerListener::Listen("unix:/" + path).status().message()),
              HasSubstr("expected at most 107"));
  EXPECT_THAT(std::string(PeerListener::Listen("unix:/nowhere/socket").status().message()),
              HasSubstr("No such file"));
}

TEST(PeerListenerAddressTest, TheSocketIsTheUsersOwnUntilItIsOpened) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = folder.path() + "/socket";
  auto listener = PeerListener::Listen("unix:" + path);
  ASSERT_TRUE(listener.ok()) << listener.status();
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  (*listener)->OpenToOthers(true);
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666u);
  (*listener).reset();
  EXPECT_NE(stat(path.c_str(), &info), 0) << "it is removed";
}

}  // namespace
}  // namespace mycc
