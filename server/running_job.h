// A running job with everything that is not in the log: its search, what it waits for, how it ends. The parts
// of the job board (job_admission.h, job_proposals.h, job_endings.h) share it. Thread rule:
// thread-compatible, but `search` belongs to a search thread while something is `under_way`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "db/schema.h"
#include "server/executors.h"
#include "server/job_finals.h"
#include "server/job_ledger.h"
#include "server/job_search.h"
#include "server/scheduler_terms.h"

namespace mycc {

struct JobEnding {
  JobState state;
  std::string message;
  double by;
  bool in_log = false;         // cancelled, without waiting for anything
  bool is_unwritable = false;  // the log is gone: it stays here as it ended
};

struct RunningJob {
  RunningJob(std::unique_ptr<JobLedger> taken_up, double elapsed_seconds, double now)
      : ledger(std::move(taken_up)),
        terms(TermsOf(ledger->stored())),
        window(ledger->num_proposals() > 0 ? ledger->last_window() : LeastWindowOf(*ledger)),
        elapsed_before(elapsed_seconds),
        started(now) {
    for (const PlannedTask& task : ledger->plan().tasks) targets.try_emplace(task.key.target, &task.target);
  }

  const std::string& id() const { return ledger->id(); }
  double Elapsed(double now) const { return elapsed_before + now - started; }
  // It neither ends nor is searched out.
  bool wants_proposals() const { return !ending && !searched_out; }
  // Its search is at rest, and could be ended until it is asked again.
  bool is_at_rest() const { return search != nullptr && under_way == 0 && wants_proposals() && !unsaved; }
  // There is news for people to see.
  void Touch() { ++revision; }

  const std::unique_ptr<JobLedger> ledger;
  JobTerms terms;
  std::map<std::string, const Target*> targets;  // of its tasks, by their texts
  uint32_t window;                               // of the next proposal (farm_window.h)
  // With a search thread while `under_way`. Null while it is not needed, or makes room for others: then it is
  // built again when it is asked next.
  std::unique_ptr<JobSearch> search;
  std::map<std::string, std::string> model_ids;  // that the search starts from, by kind
  // Work and writes that are under way beside the deciding thread: until they end, the job is neither
  // advanced nor removed.
  int under_way = 0;
  std::optional<double> asked_at;          // the search, which has not answered yet
  double retry_at = 0;                     // then the log is written to again, which it could not be before
  std::optional<StopReason> searched_out;  // why there is no next proposal
  int crashes = 0;                         // of the search, since its last proposal
  std::optional<std::string> stale;        // why the search cannot go on from its recorded proposals
  int all_crashes = 0;                     // likewise, since the server began with the job
  std::string last_crash;                  // in words
  double search_used = 0;                  // when the search answered last
  // Tasks that another job measures, and since when that one has no trial of them.
  std::map<uint32_t, double> still_since;
  bool models_saved = false;
  std::optional<v1::Proposal> unsaved;  // proposed, and not yet in the log
  std::optional<JobEnding> ending;
  std::unique_ptr<JobFinals> finals;  // once the trials are over
  double finals_by = 0;               // when they are given up, unless a worker is at one
  const double elapsed_before;        // in earlier runs of the server
  const double started;
  uint64_t revision = 1;
};

// By id.
using RunningJobs = std::map<std::string, std::unique_ptr<RunningJob>>;

// Takes the next step that the job's state asks for; the job may be gone afterwards.
using AdvanceJob = std::function<void(RunningJob*)>;

// A remark on crashes of the job's search; empty: there was none.
inline std::string SearchNote(const RunningJob& job) {
  if (job.all_crashes == 0) return "";
  return absl::StrCat("its search was begun again after a crash, ", job.all_crashes,
                      job.all_crashes == 1 ? " time" : " times", "; the last: ", job.last_crash);
}

// Ends a search where searches run: the end of a process may take its time.
inline void EndSearch(std::unique_ptr<JobSearch> search, const SearchExecutor& executor) {
  if (search == nullptr) return;
  executor([doomed = std::shared_ptr<JobSearch>(std::move(search))]() mutable { doomed.reset(); }, [] {});
}

}  // namespace mycc
