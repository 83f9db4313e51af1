// The event loop of the server's one deciding thread. Calls from many threads become events; so do the
// answers of the work beside it: log changes, which are committed in groups, log reads, and searches. The
// loop waits for none of these. Calls that wait (Lease, Watch) are kept until there is an answer.
//
//   gRPC threads --post--> mailbox --> loop thread: events, Tick, those that wait --> replies
//                             ^          |--write--> log writer -----.
//                             |          |--read---> log readers ----|
//                             |          '--work---> search threads -|
//                             '--------------- done -----------------'
//
// A look-up of the best records needs no decision. It takes less time than a thread needs to wake up, so it
// is answered on the caller's thread, or by a log reader where many ask at once.
//
// Thread rule: thread-safe. A reply is called once, on the loop's thread, or for a look-up as said; it must
// not block.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "db/log_readers.h"
#include "db/log_writer.h"
#include "proto/tuning.pb.h"
#include "proto/worker.pb.h"
#include "server/coordinator.h"
#include "server/executors.h"
#include "server/latency.h"
#include "server/local_search.h"
#include "server/loop_clock.h"
#include "server/reply.h"
#include "server/search_threads.h"

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

// How long the loop was deaf, and how its searches fare.
struct LoopStats {
  int64_t turns = 0;
  double longest_turn_seconds = 0;
  int64_t search_crashes = 0;  // since the start
  int64_t searches = 0;        // that are there
};

class ServerLoop {
 public:
  ServerLoop(ServerLoopOptions options, TuningLog* log, const TimeSource* time);
  ~ServerLoop();
  ServerLoop(const ServerLoop&) = delete;
  ServerLoop& operator=(const ServerLoop&) = delete;

  // Takes up the log's jobs and begins to answer.
  absl::Status Start();
  // Answers what waits with Unavailable, and everything from now on. Acknowledged changes are in the log.
  void Stop();

  LoopStats stats() const;
  const LoopLatencies& latencies() const { return latencies_; }
  // Since the loop ended a turn; one that is well does so several times a second.
  double SecondsSinceTurn() const { return time_->Seconds() - last_turn_.load(std::memory_order_relaxed); }

  void Register(v1::RegisterRequest request, Reply<v1::RegisterResponse> reply);
  void Lease(v1::LeaseRequest request, IsAlive alive, Reply<v1::LeaseResponse> reply);
  void Report(v1::ReportRequest request, Reply<v1::ReportResponse> reply);
  void Heartbeat(v1::HeartbeatRequest request, Reply<v1::HeartbeatResponse> reply);
  void Leave(v1::LeaveRequest request, Reply<v1::LeaveResponse> reply);
  void LeaseBuilds(v1::LeaseBuildsRequest request, IsAlive alive, Reply<v1::LeaseBuildsResponse> reply);
  void ReportBuilds(v1::ReportBuildsRequest request, Reply<v1::ReportBuildsResponse> reply);
  void FetchArtifact(v1::FetchArtifactRequest request, Reply<v1::FetchArtifactResponse> reply);

  void SubmitJob(v1::SubmitJobRequest request, Reply<v1::SubmitJobResponse> reply);
  void ListJobs(v1::ListJobsRequest request, Reply<v1::ListJobsResponse> reply);
  void WatchJob(v1::WatchJobRequest request, IsAlive alive, Reply<v1::WatchJobResponse> reply);
  void CancelJob(v1::CancelJobRequest request, Reply<v1::CancelJobResponse> reply);
  void LeaveJob(v1::LeaveJobRequest request, Reply<v1::LeaveJobResponse> reply);
  void UpdateJob(v1::UpdateJobRequest request, Reply<v1::UpdateJobResponse> reply);
  void ListOwners(v1::ListOwnersRequest request, Reply<v1::ListOwnersResponse> reply);
  void ListDevices(v1::ListDevicesRequest request, Reply<v1::ListDevicesResponse> reply);
  void Best(v1::BestRequest request, Reply<v1::BestResponse> reply);

  void GetOverview(Reply<Overview> reply);
  void GetDeviceHistory(Reply<DeviceHistory> reply);

 private:
  struct Watch {
    v1::WatchJobRequest request;
    IsAlive alive;
    Reply<v1::WatchJobResponse> reply;
    double from, until;  // when it is answered: with what has changed, or in any case
  };

  // Runs `event` on the loop's thread; `refuse` in its place when the loop has stopped.
  void Post(std::function<void()> event, std::function<void()> refuse);
  // A call that is answered at once by `handler`.
  template <typename Response>
  void PostCall(Reply<Response> reply, std::function<absl::StatusOr<Response>()> handler);
  // Runs `event` in a later turn, also while the loop is stopping.
  void Deliver(std::function<void()> event);
  Executors MakeExecutors();
  // Logs the error once, for all connections.
  void OnDamage(int64_t record, const absl::Status& why);
  void RunLoop();
  // The events that arrived, and whether the loop is to stop.
  std::pair<std::deque<std::function<void()>>, bool> TakeEvents();
  void CountTurn(double seconds);
  // Ended or not begun: there is no change to wait for.
  void WatchStored(const v1::WatchJobRequest& request, const IsAlive& alive, double wait,
                   const Reply<v1::WatchJobResponse>& reply);
  void AnswerWatches();
  void RefuseWaiting();

  const ServerLoopOptions options_;
  TuningLog* const log_;
  const TimeSource* const time_;
  LoopLatencies latencies_;
  std::atomic<double> last_turn_;

  // The loop thread's own.
  LoopClock loop_clock_;
  Coordinator coordinator_;
  int64_t unanswered_ = 0;  // reads and writes of the log whose answers are to come
  std::list<Watch> watches_;
  std::set<int64_t> damaged_records_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> mailbox_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  LoopStats stats_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<LogWriter> writer_;
  std::unique_ptr<LogReaders> readers_;
  std::unique_ptr<SearchThreads> searches_;
  std::thread loop_;
};

}  // namespace mycc
