#include "tests/e2e/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

int ConnectToSocket(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

Proxy::Proxy(std::string socket)
    : socket_(std::move(socket)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener_, 16), 0);
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Run(); });
}

Proxy::~Proxy() {
  stops_ = true;
  thread_.join();
  for (const Line& line : lines_) close(line.client), close(line.server);
  close(listener_);
}

std::string Proxy::address() const { return absl::StrCat("127.0.0.1:", port_); }

void Proxy::GoDeadOnOpenLines() { go_dead_ = true; }

void Proxy::Accept() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  const int server = client < 0 ? -1 : ConnectToSocket(socket_);
  if (server >= 0) {
    lines_.push_back({client, server});
  } else if (client >= 0) {
    close(client);
  }
}

bool Proxy::Forward(const Line& line, int from, int to) {
  char buffer[65536];
  const ssize_t got = read(from, buffer, sizeof(buffer));
  if (got <= 0) return false;
  if (line.is_dead) return true;
  for (ssize_t sent = 0; sent < got;) {
    const ssize_t more = send(to, buffer + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
    if (more <= 0) return false;
    sent += more;
  }
  return true;
}

void Proxy::Run() {
  constexpr int kLookMilliseconds = 10;
  while (!stops_) {
    if (go_dead_.exchange(false)) {
      for (Line& line : lines_) line.is_dead = true;
      dead_ += static_cast<int>(lines_.size());
    }
    std::vector<pollfd> ready = {{listener_, POLLIN, 0}};
    for (const Line& line : lines_) {
      ready.push_back({line.client, POLLIN, 0});
      ready.push_back({line.server, POLLIN, 0});
    }
    poll(ready.data(), ready.size(), kLookMilliseconds);
    std::vector<Line> open;
    for (size_t i = 0; i < lines_.size(); ++i) {
      const Line& line = lines_[i];
      bool goes_on = ready[2 * i + 1].revents == 0 || Forward(line, line.client, line.server);
      goes_on = goes_on && (ready[2 * i + 2].revents == 0 || Forward(line, line.server, line.client));
      if (goes_on) {
        open.push_back(line);
      } else {
        close(line.client), close(line.server);
      }
    }
    lines_ = std::move(open);
    if (ready[0].revents != 0) Accept();
  }
}

}  // namespace mycc
