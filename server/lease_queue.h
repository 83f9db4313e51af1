// The queue of work: trials and final rounds that wait for a worker, and those that workers have leased. A
// grant raises the trial's attempt number, and only a report with the current number counts, which fences off
// workers whose lease has ended.
//
//              Lease              Confirm            BeginCommit
//   waiting ----------> granting ---------> held ------------> committing ---.
//      ^                    | TakeBack        ^    AbortCommit      |        | Finish
//      |                    |                 '---------------------+        v
//      '--------------------'-------------------------- Return -----'     (gone)
//
// A grant, or the end of a lease, is decided here at once, and final when it is in the log. Until then the
// trial is granting or committing; its lease neither runs out nor is renewed. Leases are indexed by trial, by
// holder and by expiry, so a message costs what it lists, and a tick costs what is overdue.
//
// Blame. When a worker dies, all trials that it held are suspects, most of them innocent. A suspect is leased
// alone from then on, one to a worker: when that worker dies too, the suspect is blamed. The worker's other
// lanes and devices go on meanwhile. Suspects, and trials that should be tried elsewhere, wait in lists of
// their own and hold up no other trial.
//
// Turns. fair_share.h decides whose trial is next; in a line the oldest is. A device for which no other job
// has work gets trials of the jobs that run only when the farm is idle, two at a time, so that it is soon
// free again. Thread rule: thread-compatible. Time is an argument; no call blocks.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "proto/records.pb.h"
#include "server/fair_share.h"
#include "server/queue_view.h"

namespace mycc {

// An attempt that ended on a worker without a verdict on the candidate.
struct FailedTry {
  std::string worker, device;
  std::string what;         // in words
  bool is_doubted = false;  // the candidate failed, but the device is doubted
};

// One candidate. The log has a row for it, with its attempts.
struct TrialWork {
  std::string trace;
};
// A final round: candidates that one worker times in turn (final_round.h). The log does not know it.
struct FinalRoundWork {
  std::vector<std::string> traces;  // of the finalists, the best first
};

struct QueuedWork {
  std::string name;
  std::string job;
  std::string target;  // the target's text
  uint32_t task = 0;
  uint32_t attempt = 0;  // the last one granted; 0: none yet
  uint32_t losses = 0;   // attempts without a verdict that were blamed on the candidate
  v1::TimingProtocol protocol = v1::TIMING_PROTOCOL_UNSPECIFIED;
  std::variant<TrialWork, FinalRoundWork> what;
  // It should not go back to a worker where it failed, while there are other workers and until then.
  std::vector<FailedTry> failed_tries;
  double elsewhere_until = 0;
  // The worker that built the candidate for others (build_queue.h); empty: whoever measures it builds it.
  std::string built_by;
  // Workers whose build of it was doubted: the next one measures what it builds itself.
  std::string doubted_builder;

  bool is_round() const { return std::holds_alternative<FinalRoundWork>(what); }
  bool is_suspect() const { return losses > 0; }
};

// The holder of a lease from before the server's start, until its worker registers again: this word and the
// worker's name.
inline constexpr char kAdoptedHolder[] = "before restart: ";

enum class LeaseState {
  kGranting,  // being written to the log: no worker knows of it
  kHeld,
  kCommitting,  // its end is being written to the log
};

struct Grant {
  QueuedWork work;
  std::string holder;
  std::string device;  // of the holder; empty for one that was adopted
  LeaseState state = LeaseState::kGranting;
  double renewed = 0, expires = 0;  // of a held one
  double until = 0;                 // then it runs out, renewed or not
  double charged = 0;               // seconds, to its owner
};

// A device that asks for trials.
struct Asker {
  std::string holder, device;
  std::string pool;  // of devices, which are alike: their target
  double now = 0;
  // Whether the device can measure the trials of a line.
  std::function<bool(const std::string& job, const std::string& target)> fits;
  // Whether a trial that failed elsewhere, or is a suspect, may come here. Null: any may.
  std::function<bool(const QueuedWork&)> may_try;
  // Whether it builds a trial that nobody has built. Null: it builds any.
  std::function<bool(const QueuedWork&)> may_build;
  // Trials that others have built, of one call: they are measured at once, and are shared among the devices.
  int most_built = std::numeric_limits<int>::max();
  // Work of jobs that run only when the farm is idle, in all: so the device is soon free for others.
  int most_idle = 2;
};

// Hears of trials that begin and cease to wait to be built. Suspects, trials that failed somewhere, and final
// rounds are not among them: who measures them builds them. And of the terms of jobs.
struct UnbuiltListener {
  std::function<void(const QueuedWork&)> on_waiting, on_gone;
  std::function<void(const std::string& job, const JobTerms& terms)> on_terms;
};

class LeaseQueue {
 public:
  explicit LeaseQueue(double lease_seconds) : lease_seconds_(lease_seconds) {}

  // `listener` is called within calls of this queue, and must not call it.
  void Listen(UnbuiltListener listener) { listener_ = std::move(listener); }

  // Appends the work to the line of its job and target; `first` puts it at the head.
  void Add(QueuedWork work, bool first = false);
  // Adopts work that a worker holds already under work.attempt, after a restart of the server. The worker
  // first has to find the server again, so the lease lasts that much longer.
  void Adopt(QueuedWork work, const std::string& holder, double now);

  // Grants up to `count` trials of the lines that fit, as fair_share.h says. A suspect comes first, alone,
  // and only to a holder that has none.
  std::vector<Grant> Lease(const Asker& asker, int count);
  // The grant is in the log: the lease begins now. False when it was dropped meanwhile.
  bool Confirm(const std::string& name, uint32_t attempt, double now);
  // Undoes a grant. No effect when it was dropped meanwhile.
  void TakeBack(const std::string& name, uint32_t attempt);

  // The lease lasts until now + lease_seconds, and half an hour in all. False when it is not the holder's.
  bool Renew(const std::string& name, uint32_t attempt, const std::string& holder, double now);
  // Likewise all of the holder's.
  void RenewAll(const std::string& holder, double now);
  // The lease now belongs to another holder (a worker that registered again). False when this attempt no
  // longer stands.
  bool Rebind(const std::string& name, uint32_t attempt, const std::string& holder, double now);

  // The lease under this attempt; null for a late report: the attempt is not the current one, or not leased.
  const Grant* Find(const std::string& name, uint32_t attempt) const;
  // The lease's end is decided. False when there is no such lease, or its end was decided before.
  bool BeginCommit(const std::string& name, uint32_t attempt);
  // The end could not be written: the lease is held as before.
  void AbortCommit(const std::string& name, uint32_t attempt, double now);
  // Ends a lease with a result, for which the device worked `seconds`. False for a late report.
  bool Finish(const std::string& name, uint32_t attempt, double seconds = 0);
  // Ends a lease without a result: the trial waits again, at the head. `blamed` counts a loss.
  bool Return(const std::string& name, uint32_t attempt, bool blamed);
  // The same, but the trial is to be tried elsewhere first.
  bool ReturnElsewhere(const std::string& name, uint32_t attempt, bool blamed, FailedTry failed, double now);

  // Held leases, ordered by name, which is the order of the search.
  std::vector<Grant> HeldBy(const std::string& holder) const;
  std::vector<Grant> HeldOf(const std::string& job) const;
  std::vector<Grant> Overdue(double now) const;

  // A waiting trial was built: it is leased before those that were not. False when it does not wait to be
  // built.
  bool SetBuilt(const std::string& job, const std::string& target, const std::string& name,
                const std::string& worker);
  // Grants this trial alone, where it waits to be built: its build failed.
  std::optional<Grant> LeaseUnbuilt(const Asker& asker, const std::string& job, const std::string& target,
                                    const std::string& name);
  // The build of a leased trial is doubted: whoever measures it next builds it.
  void DoubtBuild(const std::string& name, uint32_t attempt);

  // Takes a trial that waits out of the queue; nullopt when it does not wait there.
  std::optional<QueuedWork> Withdraw(const std::string& job, const std::string& target,
                                     const std::string& name);
  // Ends a lease that nobody wants any more; late calls about it have no effect.
  void Drop(const std::string& name);
  // Forgets the waiting trials of a job; leased ones may still finish.
  void DropWaiting(const std::string& job);
  // The same with the leases and its terms: the job has ended.
  void DropJob(const std::string& job);

  // The terms of a job, before its trials are added and whenever they change.
  void SetTerms(const std::string& job, const JobTerms& terms) {
    share_.SetTerms(job, terms, now_);
    if (listener_.on_terms) listener_.on_terms(job, terms);
  }

  int64_t waiting() const { return waiting_; }
  int64_t waiting(const std::string& job) const;
  bool is_leased(const std::string& name) const { return leased_.contains(name); }
  // Suspects, and trials that failed somewhere, among those that wait.
  int64_t apart() const { return apart_; }
  // In any state.
  int64_t leased() const { return static_cast<int64_t>(leased_.size()); }
  int64_t leased_by(const std::string& holder) const { return CountOf(by_holder_, holder); }
  int64_t leased_of(const std::string& job) const { return CountOf(by_job_, job); }
  // For people, up to `limit` of each: the lines by job and target, the leases by trial.
  std::vector<QueueLine> ListLines(size_t limit) const;
  std::vector<QueueLease> ListLeases(size_t limit, double now) const;
  // Grows when a trial begins to wait: a caller that found none may find one now.
  uint64_t additions() const { return additions_; }

 private:
  // The waiting work of one job and target.
  struct LineOfWork {
    std::deque<QueuedWork> ordinary;
    std::deque<QueuedWork> built;  // by another worker
    std::deque<QueuedWork> apart;  // suspects, and work that failed somewhere
    uint64_t served = 0;           // the number of the last grant; 0: none since it was empty

    bool empty() const { return ordinary.empty() && built.empty() && apart.empty(); }
    int64_t size() const { return static_cast<int64_t>(ordinary.size() + built.size() + apart.size()); }
  };
  using Line = std::pair<std::string, std::string>;  // job, target
  using Lines = std::map<Line, LineOfWork>;
  using Names = std::set<std::string>;
  using Index = std::unordered_map<std::string, Names>;

  static int64_t CountOf(const Index& index, const std::string& key);
  static void Forget(Index* index, const std::string& key, const std::string& name);
  Grant* FindLease(const std::string& name, uint32_t attempt);
  bool HoldsSuspect(const std::string& holder) const;
  // Calls `take` with lines that fit until it returns true: jobs in the order of their share, and of a job's
  // lines the one first that was served longest ago.
  using TakeFrom = std::function<bool(LineOfWork*)>;
  bool ForLinesInTurn(const Asker& asker, FairShare::Which which, const TakeFrom& take);
  bool ForLinesOf(const std::string& job, const Asker& asker, const TakeFrom& take);
  std::vector<Grant> LeaseOf(const Asker& asker, FairShare::Which which, int count);
  int HeldOn(const Asker& asker) const;
  void SeeTime(double now);
  std::optional<QueuedWork> PopApart(const Asker& asker, bool suspects, LineOfWork* line);
  std::optional<QueuedWork> TakeOrdinary(const Asker& asker, LineOfWork* line);
  // Work that waits to be built, under this name.
  std::optional<QueuedWork> TakeUnbuilt(const Line& line, const std::string& name);
  Grant* GrantTo(const Asker& asker, QueuedWork work);
  Grant* Insert(Grant grant);
  // Into the state in which it runs out, renewed or not: its holder reports something new.
  void HoldAnew(Grant* grant, double now, double seconds);
  // From its old state into one that expires in `seconds`, or into one that does not expire.
  void Hold(Grant* grant, double now, double seconds);
  void StopClock(Grant* grant, LeaseState state);
  // `seconds`: that the device worked for a result.
  std::optional<Grant> Take(const std::string& name, uint32_t attempt,
                            std::optional<double> seconds = std::nullopt);
  std::vector<Grant> HeldAmong(const Names& names) const;

  const double lease_seconds_;
  FairShare share_;
  double now_ = 0;  // the latest time that was told
  UnbuiltListener listener_;
  Lines lines_;  // without empty ones
  uint64_t grants_ = 0;
  int64_t waiting_ = 0;
  int64_t apart_ = 0;  // of those
  uint64_t additions_ = 0;
  std::unordered_map<std::string, Grant> leased_;  // by trial
  Index by_holder_, by_job_;
  std::set<std::pair<double, std::string>> by_expiry_;  // the held ones
};

}  // namespace mycc
