// The server's HTTP: requests and late answers, and what clients may take.
#include "web/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "web/connection_watch.h"
#include "web/gzip.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A connection that sends what it is told, byte for byte.
class Client {
 public:
  explicit Client(const std::string& address) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    const timeval limit = {20, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  ~Client() { close(socket_); }

  void Send(const std::string& bytes) {
    ASSERT_EQ(send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void Get(const std::string& path) {
    Send(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
  }
  // Everything until the server closes the connection.
  std::string ReadAll() {
    std::string all;
    char bytes[4096];
    for (ssize_t got; (got = recv(socket_, bytes, sizeof(bytes), 0)) > 0;)
      all.append(bytes, static_cast<size_t>(got));
    return all;
  }

 private:
  const int socket_;
};

std::unique_ptr<HttpServer> StartServer(HttpHandler handler, HttpServerOptions options = {}) {
  options.address = "127.0.0.1:0";
  auto server = HttpServer::Start(options, std::move(handler));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

TEST(HttpServerTest, AHandlerSeesTheRequestAndItsAnswerArrives) {
  const auto server = StartServer([](const HttpRequest& request, const HttpReply& reply) {
    EXPECT_GE(request.socket, 0);
    reply({.status = 404,
           .type = "text/x",
           .body = absl::StrCat(request.method, " ", request.path, " ", request.Query("a"), " ",
                                request.Header("host")),
           .headers = {{"X-Mine", "1"}}});
  });
  Client client(server->address());
  client.Get("/some%20where?a=1%262&b");
  const std::string answer = client.ReadAll();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/x\r\n"));
  EXPECT_THAT(answer, HasSubstr("X-Mine: 1\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nGET /some where 1&2 localhost"));
}

TEST(HttpServerTest, AnswersComeInAnyOrderFromAnyThread) {
  std::mutex mutex;
  std::deque<HttpReply> replies;
  const auto server = StartServer([&](const HttpRequest&, HttpReply reply) {
    const std::lock_guard<std::mutex> lock(mutex);
    replies.push_back(std::move(reply));
  });
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(std::make_unique<Client>(server->address()));
    clients.back()->Get("/");
    while (true) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (static_cast<int>(replies.size()) == i + 1) break;
    }
  }
  for (int i = 4; i >= 0; --i) replies[i]({.body = absl::StrCat("answer ", i)});
  for (int i = 0; i < 5; ++i) EXPECT_THAT(clients[i]->ReadAll(), HasSubstr(absl::StrCat("answer ", i)));
}

TEST(HttpServerTest, AServerThatEndsAnswersWhatWaitsAndDropsLateReplies) {
  HttpReply kept;
  std::mutex mutex;
  auto server = StartServer([&](const HttpRequest&, HttpReply reply) {
    const std::lock_guard<std::mutex> lock(mutex);
    kept = std::move(reply);
  });
  Client client(server->address());
  client.Get("/");
  while (true) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (kept) break;
  }
  server.reset();
  kept({.body = "too late"});
  const std::string answer = client.ReadAll();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, HasSubstr("the server is stopping"));
}

TEST(HttpServerTest, BodiesAndLongRequestsAreRefused) {
  const auto server =
      StartServer([](const HttpRequest&, const HttpReply& reply) { reply({.body = "fine"}); });
  Client body(server->address());
  body.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc");
  EXPECT_THAT(body.ReadAll(), StartsWith("HTTP/1.1 413 "));
  Client path(server->address());
  path.Send(absl::StrCat("GET /", std::string(60'000, 'a')));
  EXPECT_THAT(path.ReadAll(), StartsWith("HTTP/1.1 414 "));
  Client good(server->address());
  good.Get("/");
  EXPECT_THAT(good.ReadAll(), HasSubstr("fine"));
}

TEST(HttpServerTest, ConnectionsOfOneAddressAreCounted) {
  HttpServerOptions options;
  options.connections_of_one = 4;
  const auto server =
      StartServer([](const HttpRequest&, const HttpReply& reply) { reply({.body = "fine"}); }, options);
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 4; ++i) {
    silent.push_back(std::make_unique<Client>(server->address()));
    silent.back()->Send("GET / HTTP/1.1\r\n");
  }
  Client fifth(server->address());
  EXPECT_EQ(fifth.ReadAll(), "");  // closed at once
  silent.clear();
  for (bool answered = false; !answered;) {  // their places are free once the server has noticed
    Client later(server->address());
    later.Get("/");
    answered = later.ReadAll().find("fine") != std::string::npos;
  }
}

TEST(HttpServerTest, AClientThatTakesTooLongLosesItsConnection) {
  HttpServerOptions options;
  options.receive_seconds = 0.1;
  const auto server =
      StartServer([](const HttpRequest&, const HttpReply& reply) { reply({.body = "fine"}); }, options);
  Client slow(server->address());
  slow.Send("GET / HT");
  EXPECT_EQ(slow.ReadAll(), "");
}

TEST(HttpServerTest, AnAddressInUseIsOneClearLine) {
  const auto server = StartServer([](const HttpRequest&, const HttpReply& reply) { reply({}); });
  HttpServerOptions options;
  options.address = server->address();
  const auto second = HttpServer::Start(options, [](const HttpRequest&, const HttpReply&) {});
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_EQ(second.status().message(),
            absl::StrCat("cannot serve pages on ", server->address(), ": Address already in use"));
  options.address = "unix:/tmp/x";
  EXPECT_TRUE(absl::IsInvalidArgument(HttpServer::Start(options, nullptr).status()));
}

TEST(ConnectionWatchTest, EndsThoseWhoseTimeIsOverOnce) {
  ConnectionWatch watch(/*receive_seconds=*/10, /*send_seconds=*/60);
  const auto overdue = [&watch](double now) {
    std::vector<int> ended;
    watch.EndOverdue(now, [&ended](int socket) { ended.push_back(socket); });
    return ended;
  };
  watch.OnReceiving(1, 0);
  watch.OnReceiving(2, 5);
  watch.OnReceiving(3, 0);
  watch.OnAnswering(3);  // the server's own time
  EXPECT_THAT(overdue(9), IsEmpty());
  EXPECT_THAT(overdue(10), ElementsAre(1));
  EXPECT_THAT(overdue(10), IsEmpty());
  watch.Remove(2);
  watch.OnSending(3, 20);
  EXPECT_THAT(overdue(79), IsEmpty());
  EXPECT_THAT(overdue(80), ElementsAre(3));
}

TEST(GzipTest, WhatIsPackedComesBack) {
  for (const std::string& text : {std::string(), std::string("a"), std::string(100'000, 'x')})
    EXPECT_EQ(Gunzip(Gzip(text)), text);
  EXPECT_LT(Gzip(std::string(100'000, 'x')).size(), 1000u);
}

}  // namespace
}  // namespace mycc
