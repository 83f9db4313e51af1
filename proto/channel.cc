#include "proto/channel.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <chrono>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/status.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "grpcpp/support/channel_arguments.h"
#include "proto/certificates.h"
#include "proto/grpc_log.h"
#include "proto/grpc_status.h"

namespace mycc {
namespace {

constexpr char kUnixPrefix[] = "unix:";
// A server that is started again is found within this time, and a fifth that gRPC adds at random.
constexpr unsigned kLookAgainSeconds = 2;  // at files of certificates, whether they have changed
constexpr int kMaxBackoffMilliseconds = 500, kFirstBackoffMilliseconds = 100;

// The host of "host:port" and whether the rest is a port.
bool SplitHostPort(const std::string& address, std::string* host) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(address.substr(colon + 1), &port))
    return false;
  *host = address.substr(0, colon);
  const bool bracketed = host->front() == '[' && host->back() == ']';
  if (bracketed) *host = host->substr(1, host->size() - 2);
  return port >= 0 && port <= 65535 && (bracketed || host->find(':') == std::string::npos);
}

// 127.0.0.0/8.
bool IsLoopback(const in_addr& address) { return ntohl(address.s_addr) >> 24 == 127; }

// gRPC's words for a line that it could not open, in ours: "failed to connect to all addresses; last error:
// UNAVAILABLE: ipv4:127.0.0.1:7070: Socket closed". The server's own words stay as they are.
std::string WhyUnreachable(const std::string& words, const std::string& tls_ca_file) {
  const auto says = [&words](const char* part) { return absl::StrContains(words, part); };
  if (says("DNS resolution failed")) return "there is no host of that name";
  if (!absl::StartsWith(words, "failed to connect to all addresses")) return words;
  if (says("certificate verify failed"))
    return absl::StrCat("its certificate is not signed by --tls-ca (", tls_ca_file, ")");
  if (says("Verification Check failed") || says("Peer name"))
    return "its certificate is for another name; expected --server with a name that is in it";
  if (says("wrong version number")) return "it does not speak TLS; expected no --tls-ca";
  if (says("Socket closed") && tls_ca_file.empty())
    return "it closed the line at once; a server that speaks TLS expects --tls-ca";
  return words.substr(words.rfind(": ") + 2);
}

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

// TLS with the files as they are at each new connection.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFor(const ServerAddress& address) {
  const bool has_own = !address.tls_cert_file.empty();
  if (has_own == address.tls_key_file.empty())
    return absl::InvalidArgumentError("--tls-cert and --tls-key belong together; expected both or neither");
  if (address.tls_ca_file.empty()) {
    if (!has_own) return grpc::InsecureChannelCredentials();
    return absl::InvalidArgumentError("--tls-cert is shown over TLS alone; expected --tls-ca");
  }
  const bool has_authority = address.tls_ca_file != "system";
  if (has_authority) {
    MYCC_ASSIGN_OR_RETURN(const std::string authorities, ReadFile(address.tls_ca_file, kMostSecretBytes));
    MYCC_RETURN_IF_ERROR(CheckCertificates(authorities, address.tls_ca_file));
  }
  if (has_own) {
    MYCC_ASSIGN_OR_RETURN(const std::string own, ReadFile(address.tls_cert_file, kMostSecretBytes));
    MYCC_ASSIGN_OR_RETURN(const std::string key, ReadFile(address.tls_key_file, kMostSecretBytes));
    MYCC_RETURN_IF_ERROR(CheckCertificates(own, address.tls_cert_file));
    MYCC_RETURN_IF_ERROR(CheckKey(key, address.tls_key_file, own));
  }
  grpc::experimental::TlsChannelCredentialsOptions options;
  if (has_authority || has_own) {
    options.set_certificate_provider(std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
        address.tls_key_file, address.tls_cert_file, has_authority ? address.tls_ca_file : "",
        kLookAgainSeconds));
  }
  if (has_authority) options.watch_root_certs();
  if (has_own) options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
}

std::chrono::system_clock::time_point SystemTimeAfter(double seconds) {
  return std::chrono::system_clock::now() + std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
}

}  // namespace

absl::Status CheckAddress(const std::string& address) {
  std::string host;
  if (absl::StartsWith(address, kUnixPrefix) && address.size() > sizeof(kUnixPrefix) - 1)
    return absl::OkStatus();
  if (SplitHostPort(address, &host)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", address, "\" is no address; expected HOST:PORT or unix:/PATH"));
}

bool IsLocal(const std::string& address) {
  if (absl::StartsWith(address, kUnixPrefix)) return true;
  std::string host;
  if (!SplitHostPort(address, &host)) return false;
  in_addr v4;
  in6_addr v6;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return IsLoopback(v4);
  if (inet_pton(AF_INET6, host.c_str(), &v6) != 1) return host == "localhost";
  if (!IN6_IS_ADDR_V4MAPPED(&v6)) return IN6_IS_ADDR_LOOPBACK(&v6);
  std::memcpy(&v4, v6.s6_addr + 12, sizeof(v4));
  return IsLoopback(v4);
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  MYCC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostSecretBytes));
  const std::string token(absl::StripAsciiWhitespace(text));
  if (token.empty() || token.find_first_of(" \t\r\n") != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(path, " holds no token; expected one word"));
  }
  return token;
}

std::string TokenValue(const std::string& token) { return absl::StrCat(kTokenPrefix, token); }

absl::StatusOr<ServerAddress> WithCredentials(ServerAddress address) {
  if (address.credentials.empty()) return address;
  const auto fill = [&address](std::string* file, const char* name) {
    const std::string path = absl::StrCat(address.credentials, "/", name);
    if (file->empty() && Exists(path)) *file = path;
  };
  fill(&address.tls_ca_file, "ca.pem");
  fill(&address.token_file, "token");
  fill(&address.tls_cert_file, "cert.pem");
  fill(&address.tls_key_file, "key.pem");
  if (address.token_file.empty() && address.tls_cert_file.empty()) {
    return absl::NotFoundError(
        absl::StrCat("`", address.credentials,
                     "` has no credential; expected a folder with token, or cert.pem and key.pem"));
  }
  return address;
}

// The token of a file, read again when the file is another.
class TokenFile {
 public:
  TokenFile(std::string path, std::string token) : path_(std::move(path)), token_(std::move(token)) {
    (void)IsOther();
  }

  // The last one that could be read.
  std::string Token() {
    const MutexLock lock(&mutex_);
    if (IsOther()) {
      if (absl::StatusOr<std::string> token = ReadToken(path_); token.ok()) token_ = *std::move(token);
    }
    return token_;
  }

 private:
  // Compared by what the system knows of a file: a call costs no reading.
  bool IsOther() {
    struct stat now = {};
    if (stat(path_.c_str(), &now) != 0) return false;
    const bool is_other = now.st_ino != seen_.st_ino || now.st_dev != seen_.st_dev ||
                          now.st_size != seen_.st_size || now.st_mtim.tv_sec != seen_.st_mtim.tv_sec ||
                          now.st_mtim.tv_nsec != seen_.st_mtim.tv_nsec ||
                          now.st_ctim.tv_nsec != seen_.st_ctim.tv_nsec;
    seen_ = now;
    return is_other;
  }

  const std::string path_;
  Mutex mutex_;
  std::string token_;
  struct stat seen_ = {};
};

absl::StatusOr<ServerChannel> ServerChannel::Open(const ServerAddress& named) {
  MYCC_ASSIGN_OR_RETURN(const ServerAddress address, WithCredentials(named));
  MYCC_RETURN_IF_ERROR(CheckAddress(address.address));
  std::shared_ptr<TokenFile> token;
  if (!address.token_file.empty()) {
    MYCC_ASSIGN_OR_RETURN(std::string text, ReadToken(address.token_file));
    if (address.tls_ca_file.empty() && !IsLocal(address.address)) {
      return absl::FailedPreconditionError(
          absl::StrCat("the token would travel to ", address.address, " in the clear; expected --tls-ca"));
    }
    token = std::make_shared<TokenFile>(address.token_file, std::move(text));
  }
  MYCC_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials, CredentialsFor(address));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxBackoffMilliseconds);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstBackoffMilliseconds);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kQuietMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kQuietMilliseconds);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // as many as it takes
  KeepGrpcErrors();
  return ServerChannel(address, grpc::CreateCustomChannel(address.address, credentials, arguments), token);
}

void ServerChannel::WaitUntilOpen(double seconds) const {
  (void)channel_->WaitForConnected(SystemTimeAfter(seconds));  // else the call that follows says why
}

absl::Status ServerChannel::StatusOf(const grpc::Status& status) const {
  const absl::Status said = FromGrpc(status);
  if (!absl::IsUnavailable(said)) return said;
  return absl::UnavailableError(WhyUnreachable(std::string(said.message()), tls_ca_file_));
}

void ServerChannel::Prepare(grpc::ClientContext* context, double seconds) const {
  context->set_deadline(SystemTimeAfter(seconds));
  if (token_ != nullptr) context->AddMetadata(kTokenHeader, TokenValue(token_->Token()));
}

}  // namespace mycc
