// A server with its log, ready to answer; and the same with a worker of this host on a private socket, for
// `mycc-tune tune` without --server. Both run the code of the separate programs. Thread rule:
// thread-compatible.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/temporary_folder.h"
#include "db/tuning_log.h"
#include "server/grpc_server.h"
#include "server/search_process.h"
#include "server/server_loop.h"
#include "web/web_server.h"
#include "worker/local_worker.h"

namespace mycc {

struct ServingOptions {
  std::string log;
  ListenOptions listen;
  std::string http;  // "HOST:PORT" of the web page; empty: none
  CoordinatorOptions coordinator;
  SearchProcessOptions search;
};

// Stops when destroyed, and leaves the log as one file.
class Serving {
 public:
  static absl::StatusOr<std::unique_ptr<Serving>> Start(const ServingOptions& options);
  ~Serving();

  const std::string& address() const { return grpc_->address(); }
  // The address of the web page; empty: there is none.
  std::string url() const { return web_ == nullptr ? "" : web_->url(); }
  // Why the log has no space; OK where it has.
  absl::Status WriteTrouble() const { return log_->WriteTrouble(); }

 private:
  Serving() = default;
  absl::Status Listen(const ServingOptions& options);
  // Answers nothing any more.
  void Stop();

  std::unique_ptr<TuningLog> log_;
  std::unique_ptr<ServerLoop> loop_;
  std::unique_ptr<GrpcServer> grpc_;
  std::unique_ptr<WebServer> web_;
};

class EmbeddedServer {
 public:
  // `devices`: of its worker, which measures their constants where the log lacks them and it is told to.
  // Takes up none of the log's jobs but those that are submitted again.
  static absl::StatusOr<std::unique_ptr<EmbeddedServer>> Start(const std::string& log,
                                                               std::vector<std::string> devices,
                                                               bool measures_constants);
  ~EmbeddedServer();

  const ServerAddress& address() const { return address_; }
  absl::Status WriteTrouble() const { return serving_->WriteTrouble(); }
  // Measurements under way are finished and reported, the rest goes back; the server still answers.
  void StopWorker();

 private:
  explicit EmbeddedServer(TemporaryFolder folder) : folder_(std::move(folder)) {}

  const TemporaryFolder folder_;  // has the socket; other users may not enter
  ServerAddress address_;
  std::unique_ptr<Serving> serving_;
  std::unique_ptr<LocalWorker> worker_;
  std::thread worker_thread_;
};

}  // namespace mycc
