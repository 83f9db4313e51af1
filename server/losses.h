// Leases that end without a result: the trial goes back to the queue, blamed or not, and one that took too
// many workers is given up. The lease is settling until its end is in the log; what could not be written is
// written again, and nothing is forgotten meanwhile. Thread rule: thread-compatible. Nothing here blocks.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "db/job_store.h"
#include "db/log_writer.h"
#include "proto/worker.pb.h"
#include "server/job_board.h"
#include "server/lease_queue.h"

namespace mycc {

struct LossOptions {
  uint32_t max_losses = 3;     // then a candidate is quarantined
  uint32_t max_attempts = 10;  // from then on every loss is blamed on the candidate
};

class Losses {
 public:
  Losses(LossOptions options, JobStore* store, LeaseQueue* queue, JobBoard* board, WriteExecutor write)
      : options_(options), store_(store), queue_(queue), board_(board), write_(std::move(write)) {}

  // In all of these, nothing happens to a lease that is not held.
  // It says nothing about the candidate.
  void ReturnUntouched(const Grant& grant);
  // The candidate is blamed for it.
  void Lose(const Grant& grant, v1::MeasureStatus status, const std::string& evidence);
  // The worker was started again; `accident` says what happened to its host, empty where nothing is known of.
  void ReturnOrLose(const Grant& grant, const std::string& worker, const std::string& accident);

  // Writes again what could not be written.
  void Retry(double now);

 private:
  // How a lease ends, until that is in the log.
  struct Ending {
    Grant grant;
    v1::MeasureStatus status = v1::MEASURE_STATUS_UNSPECIFIED;  // unspecified: nobody is blamed
    std::string evidence;
  };

  void End(Ending ending);
  void Write(const Ending& ending);
  void WriteReturn(const Ending& ending);
  // The trial ends without a word on the candidate: what took the workers is not known, and no later
  // measurement of it is spoken against.
  void WriteQuarantine(const Ending& ending);
  bool IsLast(const Ending& ending) const;
  // What was added to the log for this ending came to `status`; true when the ending stands.
  bool Stands(const Ending& ending, const absl::Status& status);

  const LossOptions options_;
  JobStore* const store_;
  LeaseQueue* const queue_;
  JobBoard* const board_;
  const WriteExecutor write_;
  std::map<std::string, Ending> unwritten_;  // by trial
  double retry_at_ = 0;
};

}  // namespace mycc
