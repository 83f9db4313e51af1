// The final rounds of a job's tasks, when its trials are over: which are open, which were held, and why one
// was not. Thread rule: thread-compatible.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "db/tuning_log.h"
#include "server/active_job.h"
#include "server/final_round.h"
#include "server/lease_queue.h"

namespace mycc {

class JobFinals {
 public:
  // Both must outlive it.
  JobFinals(TuningLog* log, ActiveJob* job) : log_(log), job_(job) {}

  // What is to be measured, each by one worker.
  std::vector<QueuedTrial> Plan();

  bool is_open() const { return !open_.empty(); }
  // A round was measured, as RecordsOf takes it. An error is the log's, and the round still open: the same
  // again may go better. What is no round is given up.
  absl::Status Finish(const std::string& round, const std::vector<v1::MeasureResult>& results);
  // The single timings stand.
  void GiveUp(const std::string& round, const std::string& why);
  void GiveUpAll(const std::string& why);

  // For people: how far they are; and which were not held, empty where all were.
  std::string Progress() const;
  std::string Failures() const;

 private:
  void Fail(uint32_t task, const std::string& why);

  TuningLog* const log_;
  ActiveJob* const job_;
  std::map<std::string, FinalRound> open_;  // by name
  size_t planned_ = 0;
  std::vector<std::string> failures_;
};

}  // namespace mycc
