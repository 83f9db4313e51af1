#include "web/http_access.h"

#include <unistd.h>

#include <ctime>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/sha256.h"
#include "base/status.h"
#include "proto/channel.h"
#include "server/access.h"

namespace mycc {
namespace {

constexpr char kBearer[] = "Bearer ";

absl::Status CheckLocalName(const HttpRequest& request) {
  const std::string host = request.Header("host");
  // An address without a port is of port 80.
  const bool has_port = host.rfind(':') != std::string::npos && !absl::EndsWith(host, "]");
  const std::string address = has_port ? host : absl::StrCat(host, ":80");
  // "unix:80" is a host of that name here, and no socket's path.
  const bool is_local = IsLocal(address) && !absl::StartsWith(address, "unix:");
  if (host.empty() || is_local) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("without a token this server answers on its own host alone, and was asked as ", host,
                   "; expected localhost or a loopback address"));
}

class CallerHttpAccess final : public HttpAccess {
 public:
  CallerHttpAccess(const AccessFiles* files, UserOfSocket user_of)
      : files_(files), user_of_(std::move(user_of)) {}

  absl::Status MayRead(const HttpRequest& request) const override {
    Shown shown;
    const std::string header = request.Header(kTokenHeader);
    if (header.empty()) {
      // Over a connection from elsewhere there is no user, and a token is asked for.
      const absl::StatusOr<uid_t> user = user_of_(request.socket);
      if (user.ok()) shown.uid = *user;
    } else {
      absl::string_view token = header;
      (void)absl::ConsumePrefix(&token, kBearer);  // a header of another form is a wrong token
      shown.token_sha256 = Sha256Hex(std::string(token));
    }
    const absl::Status admitted = Admit(shown);
    return admitted.ok() && header.empty() ? CheckLocalName(request) : admitted;
  }

 private:
  absl::Status Admit(const Shown& shown) const {
    const bool is_own = shown.uid && (*shown.uid == 0 || *shown.uid == geteuid());
    if (is_own && !files_->asks()) return absl::OkStatus();
    const absl::StatusOr<Caller> caller = files_->CallerOf(shown, time(nullptr));
    if (caller.ok()) return CheckRole(*caller, "the web page", Role::kRead);
    if (absl::IsUnauthenticated(caller.status()) && (files_->asks() || !shown.uid)) {
      return absl::UnauthenticatedError(absl::StrCat(
          shown.token_sha256.empty() ? "no token was shown" : "the token is not one that the server knows",
          "; expected `Authorization: Bearer TOKEN` with that of a caller with the role read (mycc-tune auth "
          "add NAME --role read --token), or the one in --token-file"));
    }
    if (files_->asks() || !shown.uid) return caller.status();
    return absl::PermissionDeniedError(
        absl::StrCat("user ", *shown.uid, " of this host may not look at the server of user ", geteuid(),
                     "; expected that it is started with --access, and this user is added there: mycc-tune "
                     "auth add NAME --uid ",
                     *shown.uid, " --role read"));
  }

  const AccessFiles* const files_;
  const UserOfSocket user_of_;
};

class OpenHttpAccess final : public HttpAccess {
 public:
  absl::Status MayRead(const HttpRequest&) const override { return absl::OkStatus(); }
};

}  // namespace

std::unique_ptr<HttpAccess> CallerAccess(const AccessFiles* files, UserOfSocket user_of) {
  return std::make_unique<CallerHttpAccess>(files, std::move(user_of));
}

std::unique_ptr<HttpAccess> OpenAccess() { return std::make_unique<OpenHttpAccess>(); }

}  // namespace mycc
