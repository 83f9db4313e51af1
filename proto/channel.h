// The client side of a connection to the server: addresses, TLS, token, and the words of its errors. It also
// decides which addresses are local and need no TLS. Thread rule: functions are re-entrant.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace grpc {
class Channel;
class ClientContext;
class Status;
}  // namespace grpc

namespace mycc {

inline constexpr char kDefaultAddress[] = "127.0.0.1:50917";

struct ServerAddress {
  std::string address = kDefaultAddress;    // "host:port" or "unix:/path"
  std::string tls_ca_file;                  // certificates to trust; "system": the host's own; empty: no TLS
  std::string token_file;                   // holds the token that the server asks for; empty: none
  std::string tls_cert_file, tls_key_file;  // the client's own; empty: none
  // A folder with ca.pem, and token or cert.pem and key.pem, which stand for those of the files that are not
  // named. Without ca.pem there is no TLS.
  std::string credentials;
};

// The address with the files of its folder of credentials. NotFound when the folder has none, InvalidArgument
// when a certificate or a key stands alone.
absl::StatusOr<ServerAddress> WithCredentials(ServerAddress address);

// "host:port", "[v6]:port" or "unix:/path"; InvalidArgument otherwise.
absl::Status CheckAddress(const std::string& address);
// A Unix socket, `localhost`, or a loopback address in numbers: nobody from outside this host gets there. Any
// other name is whatever its resolver says, also one that begins with "127.".
bool IsLocal(const std::string& address);

class TokenFile;

// A line to a server and what every call on it needs. Its certificates, key and token are read again when
// their files change: a worker that runs for months gets new ones without a restart.
class ServerChannel {
 public:
  // Does not connect yet: the first call fails if the server is away. InvalidArgument, NotFound (a file), and
  // FailedPrecondition for a token that would travel in the clear.
  static absl::StatusOr<ServerChannel> Open(const ServerAddress& address);

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  const std::string& address() const { return address_; }
  // Waits until the line is open, for `seconds` at most. Worth it before a call to a server that was away:
  // while nobody waits or calls, gRPC looks at what it opens every 5 s alone.
  void WaitUntilOpen(double seconds) const;
  // Sets the deadline and the token.
  void Prepare(grpc::ClientContext* context, double seconds) const;
  // The status of a call, in words of ours where the server was not reached: Unavailable says why, and what
  // was expected where the reason is --tls-ca.
  absl::Status StatusOf(const grpc::Status& status) const;

 private:
  ServerChannel(const ServerAddress& address, std::shared_ptr<grpc::Channel> channel,
                std::shared_ptr<TokenFile> token)
      : address_(address.address),
        tls_ca_file_(address.tls_ca_file),
        channel_(std::move(channel)),
        token_(std::move(token)) {}

  std::string address_, tls_ca_file_;
  std::shared_ptr<grpc::Channel> channel_;
  std::shared_ptr<TokenFile> token_;  // null: none
};

// The token in a file: one line, not empty. The server and its clients read it alike.
absl::StatusOr<std::string> ReadToken(const std::string& path);

inline constexpr char kTokenHeader[] = "authorization", kTokenPrefix[] = "Bearer ";
std::string TokenValue(const std::string& token);  // "Bearer TOKEN"

// A line on which nothing comes is tried after this long, and given up when nothing comes for as long again:
// the other end may have gone without a word. It is shorter than a lease.
inline constexpr int kQuietMilliseconds = 5000;

// Large enough for any batch of results, small enough to refuse nonsense.
inline constexpr int kMaxMessageBytes = 64 << 20;

}  // namespace mycc
