// An HTTP server for pages and metrics, by libmicrohttpd. No thread waits for an answer: a request is put
// aside until the handler's reply comes. Clients are bounded in what they take: connections in all and of one
// address, the memory of each, the time for a request and for taking an answer; bodies are not accepted.
//
//   client -> MHD thread: parse -> handler(request, reply) ... reply, by any thread -> MHD thread: send
//
// Thread rule: thread-compatible.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "web/http_message.h"

namespace mycc {

struct HttpServerOptions {
  std::string address;                 // "HOST:PORT"; port 0: any free one
  std::string tls_cert, tls_key;       // PEM; empty: no TLS
  unsigned connections = 256;          // in all
  unsigned connections_of_one = 64;    // from one address
  size_t connection_bytes = 32 << 10;  // the longest request
  double receive_seconds = 15;         // for a request
  double send_seconds = 60;            // for taking an answer
};

class HttpServer {
 public:
  // Errors: InvalidArgument, and Unavailable when the address cannot be listened on.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options,
                                                           HttpHandler handler);
  // Answers what waits with 503. Replies that come later are dropped.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // With the port that was chosen.
  const std::string& address() const;

 private:
  struct Impl;
  explicit HttpServer(std::shared_ptr<Impl> impl);
  const std::shared_ptr<Impl> impl_;
};

}  // namespace mycc
