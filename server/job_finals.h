// The final rounds of one ending job: which are open, which were held, and why one was not. Thread rule:
// thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "db/tuning_log.h"
#include "server/final_round.h"
#include "server/job_ledger.h"
#include "server/lease_queue.h"

namespace mycc {

// The facts, besides the log, that a job's final rounds are planned from.
struct FinalsQuestion {
  struct Searched {
    uint32_t task = 0;
    const PlannedTask* planned = nullptr;  // the job's
    JobsOwn own;
  };
  std::string job;
  std::vector<Searched> tasks;
};
FinalsQuestion FinalsQuestionOf(const JobLedger& ledger);

struct FinalsPlan {
  std::vector<FinalRound> rounds;
  std::vector<std::pair<uint32_t, FinalTimes>> earlier;    // tasks with finalists timed together before
  std::vector<std::pair<uint32_t, std::string>> failures;  // tasks without a round, and why
};
FinalsPlan PlanFinals(const FinalsQuestion& question, const TuningLog& log);
// The rounds as work for the queue, each for one worker.
std::vector<QueuedWork> QueuedRounds(const JobLedger& ledger, const FinalsPlan& plan);

class JobFinals {
 public:
  // The job must outlive it.
  JobFinals(JobLedger* ledger, const FinalsPlan& plan);

  bool is_open() const { return !open_.empty(); }
  bool is_open(const std::string& round) const { return open_.contains(round); }

  // The records of a round that was measured, as RecordsOf makes them; to be appended to the log, and then
  // comes Finish. Results that are no round are given up: then there are none. REQUIRES: the round is open.
  std::vector<v1::Record> Records(const std::string& round, const std::vector<v1::MeasureResult>& results,
                                  int64_t now_unix_micros);
  // They are in the log.
  void Finish(const std::string& round, const std::vector<v1::Record>& records);
  // The single timings stand.
  void GiveUp(const std::string& round, const std::string& why);
  void GiveUpAll(const std::string& why);

  // For people: how far they are; and which were not held, empty where all were.
  std::string Progress() const;
  std::string Failures() const;

 private:
  void Fail(uint32_t task, const std::string& why);

  JobLedger* const ledger_;
  std::map<std::string, FinalRound> open_;  // by name
  size_t planned_ = 0;
  std::vector<std::string> failures_;
};

}  // namespace mycc
