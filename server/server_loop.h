// The server's one thread of decisions. Calls from many threads become events; what arrives together is
// committed together; calls that wait (Lease, Watch) are kept here until there is something to say. Reading
// the log and searching have threads of their own, so that workers are answered meanwhile.
//
//   gRPC threads --post--> mailbox --> loop thread: events, Tick, those that wait --> replies
//                             ^          |--read--> log readers ----.
//                             |          '--work--> search threads --|
//                             '---------------- done ----------------'
//
// Thread rule: thread-safe. A reply is called once, on the loop's thread; it must not block.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "db/log_readers.h"
#include "proto/tuning.pb.h"
#include "proto/worker.pb.h"
#include "server/coordinator.h"
#include "server/executors.h"
#include "server/local_search.h"
#include "server/reply.h"

namespace mycc {

struct ServerLoopOptions {
  CoordinatorOptions coordinator;
  // Begins a job's search: by itself in this process.
  StartSearch start_search = LocalSearch::Start;
  // Surrounds search work: keeps it quiet while a worker on the same host times something. May be null.
  std::function<void(const std::function<void()>&)> around_search;
  int search_threads = 0;  // jobs that search at once; 0: one a CPU
  int reader_threads = 4;
  double max_wait_seconds = 60;  // of a call
  double tick_seconds = 0.1;
};

class ServerLoop {
 public:
  ServerLoop(ServerLoopOptions options, TuningLog* log, const TimeSource* time);
  ~ServerLoop();
  ServerLoop(const ServerLoop&) = delete;
  ServerLoop& operator=(const ServerLoop&) = delete;

  // Takes up the log's jobs and begins to answer.
  absl::Status Start();
  // Answers what waits with Unavailable, and everything from now on. What was acknowledged is in the log.
  void Stop();

  void Register(v1::RegisterRequest request, Reply<v1::RegisterResponse> reply);
  void Lease(v1::LeaseRequest request, IsAlive alive, Reply<v1::LeaseResponse> reply);
  void Report(v1::ReportRequest request, Reply<v1::ReportResponse> reply);
  void Heartbeat(v1::HeartbeatRequest request, Reply<v1::HeartbeatResponse> reply);
  void Leave(v1::LeaveRequest request, Reply<v1::LeaveResponse> reply);

  void SubmitJob(v1::SubmitJobRequest request, Reply<v1::SubmitJobResponse> reply);
  void ListJobs(v1::ListJobsRequest request, Reply<v1::ListJobsResponse> reply);
  void WatchJob(v1::WatchJobRequest request, IsAlive alive, Reply<v1::WatchJobResponse> reply);
  void CancelJob(v1::CancelJobRequest request, Reply<v1::CancelJobResponse> reply);
  void LeaveJob(v1::LeaveJobRequest request, Reply<v1::LeaveJobResponse> reply);
  void ListDevices(v1::ListDevicesRequest request, Reply<v1::ListDevicesResponse> reply);
  void Best(v1::BestRequest request, Reply<v1::BestResponse> reply);

 private:
  template <typename Request, typename Response>
  struct Waiting {
    Request request;
    IsAlive alive;
    Reply<Response> reply;
    double until;
  };
  struct SearchWork {
    std::function<void()> work, done;
  };

  // Runs `event` on the loop's thread; `refuse` in its place when the loop has stopped.
  void Post(std::function<void()> event, std::function<void()> refuse);
  // A call that is answered at once by `handler`.
  template <typename Response>
  void PostCall(Reply<Response> reply, std::function<absl::StatusOr<Response>()> handler);
  // Changes the log at once, and answers in the loop's next turn.
  void Write(const LogWrite& write, LogWriteDone done);
  void RunLoop();
  void RunSearches();
  // Runs `event` in a later turn, also while the loop is stopping.
  void Deliver(std::function<void()> event);
  Executors MakeExecutors();
  void AnswerWatches();
  void RefuseWaiting();

  const ServerLoopOptions options_;
  TuningLog* const log_;
  const TimeSource* const time_;

  // The loop thread's own.
  Coordinator coordinator_;
  int64_t unanswered_ = 0;  // reads and writes of the log whose answers are to come
  std::list<Waiting<v1::WatchJobRequest, v1::WatchJobResponse>> watches_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> mailbox_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  CondVar searches_changed_;
  std::deque<SearchWork> searches_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<LogReaders> readers_;
  std::thread loop_;
  std::vector<std::thread> search_threads_;
};

}  // namespace mycc
