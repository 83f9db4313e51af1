// The pages on the network: HTTP beside the server's RPCs, with the same certificates and callers. Off
// loopback it needs both. Certificates that are replaced are taken up within a second, with connections made
// anew. Thread rule: thread-compatible.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "server/access_files.h"
#include "server/grpc_server.h"
#include "server/server_loop.h"
#include "web/http_server.h"
#include "web/pages.h"

namespace mycc {

class WebServer {
 public:
  // Serves on `address`, "HOST:PORT", until Stop; `access` and `loop`, which is started, outlive it. `listen`
  // are the options of the RPCs. Errors: InvalidArgument, FailedPrecondition (an address that others can
  // reach, without its protection), Unavailable.
  static absl::StatusOr<std::unique_ptr<WebServer>> Start(const std::string& address,
                                                          const ListenOptions& listen,
                                                          const AccessFiles* access,
                                                          const std::string& log_path, ServerLoop* loop);
  // The errors that Start would return before it listens.
  static absl::Status Check(const std::string& address, const ListenOptions& listen);
  ~WebServer() { Stop(); }
  // Listens no more. The loop is stopped after this, and before the pages are destroyed.
  void Stop();

  // "http://HOST:PORT/", with the port that was chosen.
  const std::string& url() const { return url_; }

 private:
  WebServer(const AccessFiles* access, std::function<void(const std::string&)> log,
            std::unique_ptr<Pages> pages)
      : access_(access), log_(std::move(log)), pages_(std::move(pages)) {}

  absl::Status Listen(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WatchCertificates();

  const AccessFiles* const access_;
  const std::function<void(const std::string&)> log_;
  const std::unique_ptr<Pages> pages_;
  std::string url_, address_;
  std::thread watcher_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t tls_version_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<HttpServer> http_ ABSL_GUARDED_BY(mutex_);  // null while its port cannot be had
};

}  // namespace mycc
