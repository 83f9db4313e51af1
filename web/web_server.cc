#include "web/web_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "proto/certificates.h"
#include "proto/channel.h"
#include "server/time_source.h"

namespace mycc {
namespace {

struct Protection {
  std::string cert, key, token;  // empty: none
};

absl::StatusOr<Protection> ReadProtection(const WebOptions& options) {
  Protection found;
  if (!options.tls_cert_file.empty()) {
    MYCC_ASSIGN_OR_RETURN(found.cert, ReadFile(options.tls_cert_file, kMostSecretBytes));
    MYCC_ASSIGN_OR_RETURN(found.key, ReadFile(options.tls_key_file, kMostSecretBytes));
    MYCC_RETURN_IF_ERROR(CheckCertificates(found.cert, options.tls_cert_file));
    MYCC_RETURN_IF_ERROR(CheckKey(found.key, options.tls_key_file, found.cert));
  }
  if (!options.token_file.empty()) {
    MYCC_ASSIGN_OR_RETURN(found.token, ReadToken(options.token_file));
  }
  return found;
}

}  // namespace

absl::Status WebServer::Check(const WebOptions& options) {
  MYCC_RETURN_IF_ERROR(CheckAddress(options.address));
  const bool is_protected = !options.tls_cert_file.empty() && !options.token_file.empty();
  if (!IsLocal(options.address) && !is_protected && !options.insecure_allow_remote) {
    return absl::FailedPreconditionError(
        absl::StrCat("the pages on ", options.address,
                     " can be reached from other hosts; expected --tls-cert, --tls-key and --token-file, or "
                     "--insecure-allow-remote"));
  }
  return ReadProtection(options).status();
}

absl::StatusOr<std::unique_ptr<WebServer>> WebServer::Start(const WebOptions& options,
                                                            const std::string& log_path, ServerLoop* loop) {
  MYCC_RETURN_IF_ERROR(Check(options));
  MYCC_ASSIGN_OR_RETURN(Protection protection, ReadProtection(options));
  const bool is_open = protection.token.empty() && options.insecure_allow_remote;
  MYCC_ASSIGN_OR_RETURN(
      std::unique_ptr<Pages> pages,
      Pages::Open(log_path, loop, is_open ? OpenAccess() : TokenAccess(protection.token), &SystemTime()));
  HttpServerOptions http;
  http.address = options.address;
  http.tls_cert = std::move(protection.cert);
  http.tls_key = std::move(protection.key);
  const bool has_tls = !http.tls_cert.empty();
  MYCC_ASSIGN_OR_RETURN(
      std::unique_ptr<HttpServer> server,
      HttpServer::Start(http, [pages = pages.get()](const HttpRequest& request, const HttpReply& reply) {
        pages->Answer(request, reply);
      }));
  return std::unique_ptr<WebServer>(new WebServer(std::move(pages), std::move(server), has_tls));
}

}  // namespace mycc
