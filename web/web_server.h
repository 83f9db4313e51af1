// The pages on the network: HTTP beside the server's RPCs, with the same certificates and credentials. Off
// loopback it needs TLS and a token. Thread rule: thread-compatible.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/server_loop.h"
#include "web/http_access.h"
#include "web/http_server.h"
#include "web/pages.h"

namespace mycc {

struct WebOptions {
  std::string address;  // "HOST:PORT"; empty: no pages
  std::string tls_cert_file, tls_key_file;
  std::string token_file;
  bool insecure_allow_remote = false;
};

class WebServer {
 public:
  // Serves until Stop; `loop` is started, and outlives it. Errors: InvalidArgument,
  // FailedPrecondition (an address that others can reach, without its protection), Unavailable.
  static absl::StatusOr<std::unique_ptr<WebServer>> Start(const WebOptions& options,
                                                          const std::string& log_path, ServerLoop* loop);
  // The errors that Start would return before it listens.
  static absl::Status Check(const WebOptions& options);

  // Listens no more. The loop is stopped after this, and before the pages are destroyed.
  void Stop() { http_.reset(); }

  // "http://HOST:PORT/", with the port that was chosen.
  const std::string& url() const { return url_; }

 private:
  WebServer(std::unique_ptr<Pages> pages, std::unique_ptr<HttpServer> http, bool has_tls)
      : pages_(std::move(pages)),
        url_((has_tls ? "https://" : "http://") + http->address() + "/"),
        http_(std::move(http)) {}

  const std::unique_ptr<Pages> pages_;
  const std::string url_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace mycc
