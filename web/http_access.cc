#include "web/http_access.h"

#include <openssl/crypto.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/channel.h"

namespace mycc {
namespace {

class TokenHttpAccess final : public HttpAccess {
 public:
  explicit TokenHttpAccess(const std::string& token) : expected_(TokenValue(token)) {}

  absl::Status MayRead(const HttpRequest& request) const override {
    const std::string shown = request.Header(kTokenHeader);
    // In a time that does not say how much of it is right.
    const bool same =
        shown.size() == expected_.size() && CRYPTO_memcmp(shown.data(), expected_.data(), shown.size()) == 0;
    return same ? absl::OkStatus()
                : absl::UnauthenticatedError(
                      "the token is missing or wrong; expected Authorization: Bearer TOKEN");
  }

 private:
  const std::string expected_;
};

class LocalHttpAccess final : public HttpAccess {
 public:
  absl::Status MayRead(const HttpRequest& request) const override {
    const std::string host = request.Header("host");
    // An address without a port is of port 80.
    const bool has_port = host.rfind(':') != std::string::npos && !absl::EndsWith(host, "]");
    if (host.empty() || IsLocal(has_port ? host : absl::StrCat(host, ":80"))) return absl::OkStatus();
    return absl::PermissionDeniedError(
        absl::StrCat("this server answers on its own host alone, and was asked as ", host,
                     "; expected localhost or a loopback address, or --token-file"));
  }
};

class OpenHttpAccess final : public HttpAccess {
 public:
  absl::Status MayRead(const HttpRequest&) const override { return absl::OkStatus(); }
};

}  // namespace

std::unique_ptr<HttpAccess> TokenAccess(const std::string& token) {
  if (token.empty()) return std::make_unique<LocalHttpAccess>();
  return std::make_unique<TokenHttpAccess>(token);
}

std::unique_ptr<HttpAccess> OpenAccess() { return std::make_unique<OpenHttpAccess>(); }

}  // namespace mycc
