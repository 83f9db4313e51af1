#include "proto/channel.h"

#include <chrono>

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

namespace mycc {
namespace {

constexpr char kUnixPrefix[] = "unix:";
constexpr int kMaxBackoffMilliseconds = 2000;

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
  return host == "localhost" || host == "::1" || absl::StartsWith(host, "127.");
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  MYCC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
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
      MYCC_ASSIGN_OR_RETURN(options.pem_root_certs, ReadFile(address.tls_ca_file));
    }
    credentials = grpc::SslCredentials(options);
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxBackoffMilliseconds);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kMaxBackoffMilliseconds / 20);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return ServerChannel(address.address, grpc::CreateCustomChannel(address.address, credentials, arguments),
                       token);
}

void ServerChannel::Prepare(grpc::ClientContext* context, double seconds) const {
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3)));
  if (!token_.empty()) context->AddMetadata(kTokenHeader, TokenValue(token_));
}

}  // namespace mycc
