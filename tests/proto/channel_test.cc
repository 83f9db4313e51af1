// Addresses, tokens, and the words of errors when a server cannot be reached.
#include "proto/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/status.h"
#include "proto/worker.grpc.pb.h"

namespace mycc {
namespace {

TEST(IsLocalTest, ALoopbackAddressIsLocalAndANameThatLooksLikeOneIsNot) {
  for (const char* address : {"unix:/tmp/socket", "localhost:1", "127.0.0.1:7070", "127.255.0.9:1",
                              "[::1]:7070", "[::ffff:127.0.0.1]:1"})
    EXPECT_TRUE(IsLocal(address)) << address;
  for (const char* address : {"127.evil.org:7070", "127.0.0.1.evil.org:1", "128.0.0.1:1", "0.0.0.0:1",
                              "[::]:1", "[::2]:1", "[::ffff:10.0.0.1]:1", "localhost.evil.org:1",
                              "example.org:1", "127.0.0.1", "[127.0.0.1.evil.org]:1"})
    EXPECT_FALSE(IsLocal(address)) << address;
}

TEST(ServerChannelTest, ATokenDoesNotTravelInTheClearToANameThatLooksLocal) {
  ServerAddress address;
  address.address = "127.evil.org:7070";
  address.token_file = "/proc/self/comm";  // a word
  EXPECT_TRUE(absl::IsFailedPrecondition(ServerChannel::Open(address).status()));
  address.address = "127.0.0.1:7070";
  EXPECT_TRUE(ServerChannel::Open(address).ok());
}

absl::Status After(const std::string& grpc_words, const std::string& tls_ca = "") {
  ServerAddress address;
  address.address = "localhost:7070";
  address.tls_ca_file = tls_ca;
  return ServerChannel::Open(address)->StatusOf(grpc::Status(grpc::StatusCode::UNAVAILABLE, grpc_words));
}

TEST(ServerChannelTest, GrpcsWordsAreMadeOurs) {
  const std::string failed = "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:7070: ";
  EXPECT_EQ(After(failed + "Failed to connect to remote host: Connection refused").message(),
            "Connection refused");
  EXPECT_EQ(After(failed + "Socket closed").message(),
            "it closed the line at once; a server that speaks TLS expects --tls-ca");
  const std::string handshake = failed + "Ssl handshake failed: SSL_ERROR_SSL: error:0A000086:SSL routines::";
  EXPECT_EQ(After(handshake + "certificate verify failed", "system").message(),
            "its certificate is not signed by --tls-ca (system)");
  EXPECT_EQ(After(handshake + "wrong version number", "system").message(),
            "it does not speak TLS; expected no --tls-ca");
  EXPECT_EQ(After("DNS resolution failed for nowhere:1: C-ares status is not ARES_SUCCESS").message(),
            "there is no host of that name");
  EXPECT_EQ(After("tuning.db: cannot run a statement: database is locked").message(),
            "tuning.db: cannot run a statement: database is locked")
      << "the server's own words";
}

// A server that has no method, but says so.
class MuteServer {
 public:
  explicit MuteServer(int port) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port), grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  int port() const { return port_; }

 private:
  v1::WorkerService::Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

bool Answers(const ServerChannel& channel) {
  channel.WaitUntilOpen(0.1);
  grpc::ClientContext context;
  channel.Prepare(&context, 5);
  v1::HeartbeatResponse response;
  return v1::WorkerService::NewStub(channel.channel())->Heartbeat(&context, {}, &response).error_code() ==
         grpc::StatusCode::UNIMPLEMENTED;
}

TEST(ServerChannelTest, AServerThatIsStartedAgainIsFoundWithinASecond) {
  std::optional<MuteServer> server(0);
  const int port = server->port();
  ServerAddress address;
  address.address = absl::StrCat("127.0.0.1:", port);
  const absl::StatusOr<ServerChannel> channel = ServerChannel::Open(address);
  ASSERT_TRUE(channel.ok()) << channel.status();
  ASSERT_TRUE(Answers(*channel));
  server.reset();
  for (int i = 0; i < 10; ++i) ASSERT_FALSE(Answers(*channel));  // gRPC's pauses have grown
  server.emplace(port);
  channel->WaitUntilOpen(1);
  EXPECT_TRUE(Answers(*channel));
}

TEST(ServerChannelTest, FilesWithoutEndAreRefusedAtOnce) {
  ServerAddress address;
  address.tls_ca_file = "/dev/zero";
  EXPECT_THAT(std::string(ServerChannel::Open(address).status().message()),
              testing::HasSubstr("`/dev/zero` is too large; expected at most 1 MiB"));
  address.tls_ca_file.clear();
  address.token_file = "/dev/zero";
  EXPECT_TRUE(absl::IsInvalidArgument(ServerChannel::Open(address).status()));
}

}  // namespace
}  // namespace mycc
