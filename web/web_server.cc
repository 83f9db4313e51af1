#include "web/web_server.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/channel.h"
#include "server/peer_user.h"
#include "server/time_source.h"

namespace mycc {
namespace {

constexpr auto kLook = std::chrono::seconds(1);

bool AsksCallers(const ListenOptions& listen) {
  return !listen.token_file.empty() || !listen.access_file.empty();
}

}  // namespace

absl::Status WebServer::Check(const std::string& address, const ListenOptions& listen) {
  MYCC_RETURN_IF_ERROR(CheckAddress(address));
  const bool is_protected = !listen.tls_cert_file.empty() && AsksCallers(listen);
  if (IsLocal(address) || is_protected || listen.insecure_allow_remote) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the web page on ", address,
      " can be reached from other hosts; expected --credentials with a folder of `mycc-tune auth init`, or "
      "--tls-cert, --tls-key, and --access or --token-file, or --insecure-allow-remote"));
}

absl::StatusOr<std::unique_ptr<WebServer>> WebServer::Start(const std::string& address,
                                                            const ListenOptions& listen,
                                                            const AccessFiles* access,
                                                            const std::string& log_path, ServerLoop* loop) {
  MYCC_RETURN_IF_ERROR(Check(address, listen));
  const bool is_open = listen.insecure_allow_remote && !AsksCallers(listen);
  MYCC_ASSIGN_OR_RETURN(
      std::unique_ptr<Pages> pages,
      Pages::Open(log_path, loop, is_open ? OpenAccess() : CallerAccess(access, UserOfPeer), &SystemTime()));
  std::unique_ptr<WebServer> server(new WebServer(access, listen.log, std::move(pages)));
  const MutexLock lock(&server->mutex_);
  MYCC_RETURN_IF_ERROR(server->Listen(address));
  const bool has_tls = !access->tls().certificates.empty();
  server->address_ = server->http_->address();
  server->url_ = absl::StrCat(has_tls ? "https://" : "http://", server->address_, "/");
  if (has_tls) server->watcher_ = std::thread([server = server.get()] { server->WatchCertificates(); });
  return server;
}

absl::Status WebServer::Listen(const std::string& address) {
  HttpServerOptions options;
  options.address = address;
  tls_version_ = access_->tls_version();
  TlsTexts tls = access_->tls();
  options.tls_cert = std::move(tls.certificates);
  options.tls_key = std::move(tls.key);
  MYCC_ASSIGN_OR_RETURN(http_, HttpServer::Start(options, [pages = pages_.get()](const HttpRequest& request,
                                                                                 const HttpReply& reply) {
                          pages->Answer(request, reply);
                        }));
  return absl::OkStatus();
}

void WebServer::WatchCertificates() {
  const MutexLock lock(&mutex_);
  std::string told;
  while (!stopping_) {
    changed_.WaitUntil(&mutex_, std::chrono::steady_clock::now() + kLook);
    if (stopping_ || (http_ != nullptr && tls_version_ == access_->tls_version())) continue;
    http_.reset();
    const std::string trouble(Listen(address_).message());
    if (!trouble.empty() && trouble != told && log_) log_(trouble);
    told = trouble;
  }
}

void WebServer::Stop() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (watcher_.joinable()) watcher_.join();
  const MutexLock lock(&mutex_);
  http_.reset();
}

}  // namespace mycc
