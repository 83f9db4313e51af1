#include "proto/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grpcpp/support/status.h"

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
