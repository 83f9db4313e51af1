#include "proto/channel.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <chrono>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "proto/certificates.h"
#include "proto/grpc_log.h"
#include "proto/grpc_status.h"

namespace mycc {
namespace {

constexpr char kUnixPrefix[] = "unix:";
// A server that is started again is found within this time, and a fifth that gRPC adds at random.
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

std::string TokenValue(const std::string& token) { return absl::StrCat("Bearer ", token); }

absl::StatusOr<ServerChannel> ServerChannel::Open(const ServerAddress& address) {
  MYCC_RETURN_IF_ERROR(CheckAddress(address.address));
  std::string token;
  if (!address.token_file.empty()) {
    MYCC_ASSIGN_OR_RETURN(token, ReadToken(address.token_file));
    if (address.tls_ca_file.empty() && !IsLocal(address.address)) {
      return absl::FailedPreconditionError(
          absl::StrCat("the token would travel to ", address.address, " in the clear; expected --tls-ca"));
    }
  }
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (!address.tls_ca_file.empty()) {
    grpc::SslCredentialsOptions options;
    if (address.tls_ca_file != "system") {
      MYCC_ASSIGN_OR_RETURN(options.pem_root_certs, ReadFile(address.tls_ca_file, kMostSecretBytes));
      MYCC_RETURN_IF_ERROR(CheckCertificates(options.pem_root_certs, address.tls_ca_file));
    }
    credentials = grpc::SslCredentials(options);
  }
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
  if (!token_.empty()) context->AddMetadata(kTokenHeader, TokenValue(token_));
}

}  // namespace mycc
