// Ends leases without a result: the trial returns to the queue, blamed or not, or is given up after too many
// workers. The lease is committing until its end is in the log; a failed write is repeated, so that nothing
// is lost. Thread rule: thread-compatible. No call blocks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "db/job_store.h"
#include "db/log_writer.h"
#include "proto/worker.pb.h"
#include "server/job_board.h"
#include "server/lease_queue.h"
#include "server/time_source.h"

namespace mycc {

struct LossOptions {
  uint32_t max_losses = 3;     // then a candidate is quarantined
  uint32_t max_attempts = 10;  // from then on every loss is blamed on the candidate
};

class Losses {
 public:
  Losses(LossOptions options, JobStore* store, LeaseQueue* queue, JobBoard* board, const TimeSource* time,
         WriteExecutor write)
      : options_(options),
        store_(store),
        queue_(queue),
        board_(board),
        time_(time),
        write_(std::move(write)) {}

  // The functions below ignore a lease that is not held.
  // The worker gave the trial back, or no worker has it.
  void Return(const Grant& grant);
  // The worker cannot measure the trial, through no fault of the candidate: other workers try first.
  void ReturnElsewhere(const Grant& grant, FailedTry failed);
  // The worker or its device was lost during the trial, and the candidate is blamed.
  void Lose(const Grant& grant, v1::MeasureStatus status, FailedTry failed);
  // A worker was lost with all of these trials. A suspect among them is blamed alone.
  void LoseAll(const std::vector<Grant>& grants, const FailedTry& failed);
  // A worker does not have these trials any more, hardly through their fault: they are blamed only when that
  // has happened too often.
  void HandBack(const std::vector<Grant>& grants, const FailedTry& failed);

  // Repeats failed writes.
  void Retry();

 private:
  // The end of a lease, until it is in the log.
  struct Ending {
    Grant grant;
    v1::MeasureStatus status = v1::MEASURE_STATUS_UNSPECIFIED;  // unspecified: nobody is blamed
    std::optional<FailedTry> failed;

    bool is_blamed() const { return status != v1::MEASURE_STATUS_UNSPECIFIED; }
  };

  void End(Ending ending);
  void Write(const Ending& ending);
  void WriteReturn(const Ending& ending);
  // The trial ends without a verdict on the candidate: the cause of the workers' loss is unknown, and later
  // measurements of the candidate stay valid.
  void WriteQuarantine(const Ending& ending);
  void Requeue(const Ending& ending);
  bool IsLast(const Ending& ending) const;
  // The log's answer to the change for this ending is `status`. True when the ending stands.
  bool Stands(const Ending& ending, const absl::Status& status);

  const LossOptions options_;
  JobStore* const store_;
  LeaseQueue* const queue_;
  JobBoard* const board_;
  const TimeSource* const time_;
  const WriteExecutor write_;
  std::map<std::string, Ending> unwritten_;  // by trial
  double retry_at_ = 0;
};

}  // namespace mycc
