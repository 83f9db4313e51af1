// Plans the final round of a task, and turns its results into records. In a final round, one worker times the
// task's leading candidates and the default schedule again, in turn, so that neither a lucky sample nor a
// drift of the device decides which is the fastest.
//
//   log: the leaders --Plan--> one assignment --> worker: A B C A B C ... --Records--> log: the same, ranked
//
// Nothing of a round is kept before it is over. A restarted server plans it again; a round that cannot be
// held leaves the single timings as they are. Pure functions but for reading the log. Thread rule:
// thread-compatible.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/tuning_log.h"
#include "server/job_ledger.h"
#include "server/job_plan.h"

namespace mycc {

struct FinalRound {
  std::string name;
  uint32_t task = 0;
  std::vector<v1::Record> finalists;     // the best first
  std::optional<v1::Record> by_default;  // the job's default schedule, also where it is no finalist
};

// The records that may be the best, from all in the order of their ranks: not far behind the best, or within
// its interval. At most eight, which takes a few seconds, and one of equal binaries. In its first round
// the best meets the three next ones even when they are further behind, up to 1.5 times its time. The default
// schedule is one more, among them or not, unless it took more than four times as long; where it leads alone,
// the next one within that factor is its rival. It was timed once, early, and a machine that others share may
// have been slower or faster then.
//
// A job on a slow day ranks behind earlier ones, whatever it has found. So its best one is a finalist where
// it would lead, were the job's default as fast as the log has it: `best` took `best_share` of the default's
// time.
struct OwnRecords {
  std::optional<v1::Record> by_default, best;
  double best_share = 0;  // 0: unknown
};
std::vector<v1::Record> Finalists(const std::vector<StoredRecord>& ranked, const OwnRecords& own = {});

// The job's own trials that its final round needs, and their times relative to each other.
struct JobsOwn {
  std::string default_trial, best_trial;  // the fastest of a default schedule, and of all; empty: none
  double best_share = 0;                  // as OwnRecords'
};

struct FinalRoundPlan {
  std::optional<FinalRound> round;    // nullopt: nothing to decide, or the job has held it
  std::optional<FinalTimes> earlier;  // of another job's round with these finalists
};
// The round of a job's task, over all that the log holds for it.
absl::StatusOr<FinalRoundPlan> PlanFinalRound(const TuningLog& log, const std::string& job, uint32_t task,
                                              const PlannedTask& planned, const JobsOwn& own);

// The records of a round that was held: `results` has the first finalist's, then its rivals'. The winner, the
// one to be preferred among those that tie for the fastest (ties.h), ranks just before where the best ranked
// until now; its ties follow it at once, and the others as far behind as their times are.
// InvalidArgument when the results are not those of such a round.
absl::StatusOr<std::vector<v1::Record>> RecordsOf(const FinalRound& round,
                                                  const std::vector<v1::MeasureResult>& results,
                                                  int64_t now_unix_micros);

// The finalists that passed a job's round for a task, from the log.
absl::StatusOr<std::vector<v1::Record>> FinalRecordsOf(const TuningLog& log, const std::string& job,
                                                       uint32_t task, const PlannedTask& planned);
// The times of a round's winner and of the default schedule, whose record is that of an earlier trial. There
// are no finalists when none has passed.
FinalTimes FinalTimesOf(const std::vector<v1::Record>& records, const std::optional<v1::Record>& by_default);
// Nullopt for a text that is no trial's name, and for a trial without a record.
absl::StatusOr<std::optional<v1::Record>> RecordOfTrial(const TuningLog& log, const std::string& trial);

}  // namespace mycc
