// The jobs: taken in, planned, searched round by round, and ended. Everything that a restart needs is in the
// log before it happens; the rounds' trials go to the lease queue.
//
//   Submit -> search (on the search thread): next round -> log -> lease queue
//   ... OnFinished -> search: next round ... -> end
//
// Thread rule: thread-compatible. Search work runs through the executor, and only its `done` part comes back
// here.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/job_store.h"
#include "db/log_writer.h"
#include "db/model_store.h"
#include "db/tuning_log.h"
#include "proto/names.h"
#include "proto/tuning.pb.h"
#include "server/active_job.h"
#include "server/job_finals.h"
#include "server/lease_queue.h"
#include "server/time_source.h"

namespace mycc {

// Runs `work`, elsewhere or at once, and then `done` on the board's thread. Works run one after the other, in
// order.
using SearchExecutor = std::function<void(std::function<void()> work, std::function<void()> done)>;

struct JobBoardOptions {
  int generation_size = 16;
  int max_running = 32;    // jobs; more wait for their turn
  int max_waiting = 1000;  // and more than that are refused
  // Whether Start takes up every unfinished job of the log; otherwise one is taken up when it is submitted
  // again.
  bool resume_all = true;
  double ending_seconds = 5;   // for leased trials to be reported when a job ends before them
  double finals_seconds = 60;  // for a worker to take a final round, or the next one
};

class JobBoard {
 public:
  JobBoard(JobBoardOptions options, TuningLog* log, LeaseQueue* queue, const TimeSource* time,
           WriteExecutor write, SearchExecutor executor);

  absl::Status Start();

  // Progress of the job that does what is asked: a new one, the same submission's running or waiting one, or
  // the one that has done it.
  absl::StatusOr<v1::JobProgress> Submit(const v1::SubmitJobRequest& request);
  absl::StatusOr<v1::JobProgress> Cancel(const std::string& job);
  absl::StatusOr<v1::JobProgress> Progress(const std::string& job);
  absl::StatusOr<std::vector<v1::JobProgress>> List(uint32_t limit);  // the newest first, without tasks
  // Grows with every change of the job; 0 for one that does not run.
  uint64_t RevisionOf(const std::string& job) const;

  // The job whose trials, or final rounds, may be leased; null otherwise.
  const ActiveJob* Leasable(const std::string& job) const;
  bool IsRunning(const std::string& job) const { return running_.contains(job); }
  // A trial's result is in the log.
  void OnFinished(const TrialId& trial, const v1::MeasureResult& result);

  // A final round was measured: the candidate's result, and its rivals'. An error is the log's: the round is
  // still open, and the same report may go better later.
  absl::Status FinishRound(const std::string& job, const std::string& round,
                           const std::vector<v1::MeasureResult>& results);
  // It cannot be held.
  void GiveUpRound(const std::string& job, const std::string& round, const std::string& why);

  // Ends what ran out of time, writes what could not be written before.
  void Tick();

 private:
  struct Ending {
    JobState state;
    std::string message;
    double by;
  };
  struct Entry {
    std::unique_ptr<ActiveJob> job;
    std::unique_ptr<JobSearch> search;             // with the search thread while `searching`
    std::map<std::string, std::string> model_ids;  // that the search starts from, by kind
    bool searching = false;
    bool searched_out = false;  // there is no next round
    bool models_saved = false;
    std::optional<SearchRound> unsaved;  // proposed, and not yet in the log
    std::optional<Ending> ending;
    std::unique_ptr<JobFinals> finals;  // once the trials are over
    double finals_by = 0;               // when they are given up, unless a worker is at one
    double elapsed_before = 0;          // in earlier runs of the server
    double started = 0;
    uint64_t revision = 0;
  };

  absl::Status Create(const std::string& id, const JobPlan& plan, const std::string& submission);
  absl::Status Resume(const Job& job);
  // Begins jobs that wait, as far as there is room.
  void StartWaiting();
  bool IsWaiting(const std::string& job) const;
  Entry* Begin(std::unique_ptr<ActiveJob> job, double elapsed_seconds);
  // On the search thread: first the search itself is built, then rounds are asked for.
  void BuildSearch(Entry* entry, std::function<absl::Status(JobSearch*)> restore);
  void AskForRound(Entry* entry);
  void OnRound(Entry* entry, absl::StatusOr<std::optional<SearchRound>> round);
  void SaveRound(Entry* entry);
  // Does whatever the job's state asks for next.
  void Advance(Entry* entry);
  void EndBefore(Entry* entry, JobState state, const std::string& message);
  // The trials are over: the final rounds begin, where the job has come to its end.
  void BeginFinals(Entry* entry);
  // Gives up those that no worker takes.
  void WatchFinals(Entry* entry);
  // What the search learned goes into the log first.
  void SaveModels(Entry* entry);
  void Finalize(Entry* entry);
  double Elapsed(const Entry& entry) const { return entry.elapsed_before + time_->Seconds() - entry.started; }
  void Touch(Entry* entry) { entry->revision = ++revision_; }
  v1::JobProgress ProgressOf(const Entry& entry, bool with_tasks) const;
  v1::JobProgress ProgressOfEnded(const Job& job, const ActiveJob& active, bool with_tasks) const;

  const JobBoardOptions options_;
  TuningLog* const log_;
  JobStore store_;
  ModelStore models_;
  LeaseQueue* const queue_;
  const TimeSource* const time_;
  const WriteExecutor write_;
  const SearchExecutor executor_;
  std::map<std::string, std::unique_ptr<Entry>> running_;
  std::deque<std::string> waiting_;  // jobs for their turn
  uint64_t revision_ = 0;
};

}  // namespace mycc
