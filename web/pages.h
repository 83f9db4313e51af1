// The pages of a server: health, metrics, /api/v1, and the page for people. They read through the loop's
// overview and through log readers of its own, so that looking at a server delays neither its decisions nor
// its clients. The length of every answer is bounded. docs/monitoring.md lists the paths. Thread rule:
// thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "db/log_readers.h"
#include "server/server_loop.h"
#include "server/time_source.h"
#include "web/api_json.h"
#include "web/convergence.h"
#include "web/http_access.h"
#include "web/http_message.h"
#include "web/shared_read.h"

namespace mycc {

class Pages {
 public:
  // `loop` is started and outlives the pages, but stops before they are destroyed; the log at `log_path` has
  // a writer.
  static absl::StatusOr<std::unique_ptr<Pages>> Open(const std::string& log_path, ServerLoop* loop,
                                                     std::unique_ptr<HttpAccess> access,
                                                     const TimeSource* time);
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // Answers any request, also one for a path that is not there.
  void Answer(const HttpRequest& request, const HttpReply& reply);

 private:
  using View = absl::StatusOr<Json>;
  using ViewReply = std::function<void(View)>;

  Pages(const std::string& log_path, ServerLoop* loop, std::unique_ptr<HttpAccess> access,
        const TimeSource* time);
  void AnswerApi(const std::string& path, const HttpRequest& request, const ViewReply& reply);
  void Ready(const HttpReply& reply);
  void Metrics(const HttpReply& reply);
  void Status(const ViewReply& reply);
  void Jobs(const HttpRequest& request, const ViewReply& reply);
  void Job(const std::string& id, const ViewReply& reply);
  void Candidates(const std::string& job, const HttpRequest& request, const ViewReply& reply);
  void Failures(const HttpRequest& request, const ViewReply& reply);
  void Record(const std::string& id, const ViewReply& reply);
  void Devices(const ViewReply& reply);
  void Best(const HttpRequest& request, const ViewReply& reply);
  // A reply of the loop's that goes on on a reader's thread: to write an answer is not the deciding thread's
  // work.
  template <typename Value>
  Reply<Value> Beside(Reply<Value> reply);
  // Runs `look` on a reader's thread.
  template <typename Look>
  void Read(Look look, const ViewReply& reply);

  const std::string log_path_;
  ServerLoop* const loop_;
  const std::unique_ptr<HttpAccess> access_;
  const TimeSource* const time_;
  const int64_t started_unix_micros_;
  Convergences convergences_;
  SharedRead<Overview> overview_;
  SharedRead<DeviceHistory> history_;
  SharedRead<LogFacts> facts_;
  std::unique_ptr<LogReaders> readers_;  // ends first: its answers use the rest
};

}  // namespace mycc
