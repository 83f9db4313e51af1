// The server without its network: jobs, workers and the lease queue between them. No call blocks; each Tick
// looks at the calls that wait. Thread rule: thread-compatible.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/tuning_log.h"
#include "proto/tuning.pb.h"
#include "server/dispatcher.h"
#include "server/executors.h"
#include "server/job_board.h"
#include "server/lease_queue.h"
#include "server/overview.h"
#include "server/time_source.h"

namespace mycc {

// The answer to a look-up, from the log alone.
absl::StatusOr<v1::BestResponse> ReadBest(const v1::BestRequest& request, const TuningLog& log);

struct CoordinatorOptions {
  JobBoardOptions jobs;
  DispatcherOptions dispatch;
};

class Coordinator {
 public:
  // `log` is open for serving, and outlives the coordinator, as `time` does. Functions that executors were
  // given may be called for as long as the coordinator lives.
  Coordinator(CoordinatorOptions options, TuningLog* log, const TimeSource* time, const Executors& executors);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Takes up the jobs that an earlier server left.
  absl::Status Start();
  void Tick();

  Dispatcher& workers() { return dispatcher_; }

  JobAdmission& jobs() { return board_.admission(); }

  // The calls of JobAdmission and JobListing; a job that stands still also says why.
  void Submit(const v1::SubmitJobRequest& request, const JobReply& reply);
  void Update(const v1::UpdateJobRequest& request, const JobReply& reply);
  void Show(const std::string& job, const JobReply& reply) const;
  void Best(const v1::BestRequest& request, const Reply<v1::BestResponse>& reply) const;

  mycc::Overview Overview() const;
  const DeviceHistory& device_history() const { return dispatcher_.history(); }

  // Crashes of searches since the start, and the searches that are there.
  int64_t search_crashes() const { return board_.search_crashes(); }
  int64_t searches() const { return board_.searches(); }
  uint64_t RevisionOf(const std::string& job) const { return board_.RevisionOf(job); }

 private:
  // The same executors, wrapped so that the result of every write is known here.
  Executors Watched(Executors executors);
  void OnWritten(const absl::Status& status);
  // Writes to a log that could not be written, now and then. No job may have anything to write, and a server
  // that is not ready gets no new jobs: without this it would never be ready again.
  void TryLog();
  void TellTrouble(const std::string& trouble);
  JobReply Explaining(const JobReply& reply) const;
  v1::JobProgress Explained(v1::JobProgress progress) const;

  // Tells of a job.
  void Tell(const char* event, const std::string& job) const;

  const ReadExecutor read_;
  const EventLog log_;
  const TimeSource* const time_;
  TuningLog* const tried_log_;
  WriteExecutor write_;
  std::string trouble_;  // why the log cannot be written now; empty: it can be written
  double next_try_ = 0;  // of a log that cannot be written
  bool is_trying_ = false;
  LeaseQueue queue_;
  JobBoard board_;
  Dispatcher dispatcher_;
};

}  // namespace mycc
