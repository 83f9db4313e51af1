// The trials that wait for a worker and those that workers hold. A grant raises the trial's attempt number,
// and a report must carry the current one: that fences the reports of workers whose lease ended.
//
//              Lease              Confirm            Settle
//   waiting ----------> granting ---------> held -------------> settling ---.
//      ^                    | TakeBack        ^     Unsettle        |       | Finish
//      |                    |                 '---------------------'       v
//      '--------------------'-------------------------- Return ----'      (gone)
//
// A grant or its end is decided here at once, and stands once it is in the log: until then it is granting, or
// settling, and neither runs out nor is renewed. Leases are found by trial, by holder and by the time at
// which they run out, so that a message costs what it names and a tick costs what is overdue.
//
// Blame. When a worker dies, every trial it held is a suspect, and the innocent are many. A suspect is leased
// alone from then on, so that the next loss points at one trial, and no innocent trial is blamed twice.
// Thread rule: thread-compatible. Time is an argument; nothing here blocks.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mycc {

struct QueuedTrial {
  std::string name;
  std::string job;
  std::string target;  // text: what may measure it
  uint32_t task = 0;
  uint32_t attempt = 0;  // the last one granted; 0: none yet
  uint32_t losses = 0;   // attempts that ended without a word on the candidate, blamed on it
  std::string trace;
  std::vector<std::string> rivals;  // not empty: no trial but a final round, of which the log knows nothing

  bool is_round() const { return !rivals.empty(); }
};

// The holder of a lease from before the server started, until its worker registers again: this, and the
// worker's name.
inline constexpr char kAdoptedHolder[] = "before restart: ";

enum class LeaseState {
  kGranting,  // on its way into the log: nobody has heard of it
  kHeld,
  kSettling,  // its end is on its way into the log
};

struct Grant {
  QueuedTrial trial;
  std::string holder;
  LeaseState state = LeaseState::kGranting;
  double expires = 0;  // of a held one
};

class LeaseQueue {
 public:
  explicit LeaseQueue(double lease_seconds) : lease_seconds_(lease_seconds) {}

  // To the end of the line of its job and target; `first` puts it at the head.
  void Add(QueuedTrial trial, bool first = false);
  // A trial that somebody already holds under trial.attempt, after a restart of the server, which its holder
  // has yet to find again: the lease is as much longer.
  void Adopt(QueuedTrial trial, const std::string& holder, double now);

  // Grants up to `count` trials of the lines that `fits` admits, which take turns; in a line the oldest
  // first. A suspect comes alone, and only to a holder without leases; a holder of a suspect gets nothing
  // more.
  using Fits = std::function<bool(const std::string& job, const std::string& target)>;
  std::vector<Grant> Lease(const std::string& holder, int count, const Fits& fits);
  // The grant is in the log: the lease begins now. False when it was dropped meanwhile.
  bool Confirm(const std::string& name, uint32_t attempt, double now);
  // As if the grant had not been made. Nothing when it was dropped meanwhile.
  void TakeBack(const std::string& name, uint32_t attempt);

  // All leases of the holder last until now + lease_seconds.
  void RenewAll(const std::string& holder, double now);
  // The lease now belongs to another holder (a worker that registered again). False when this attempt no
  // longer stands.
  bool Rebind(const std::string& name, uint32_t attempt, const std::string& holder, double now);

  // The lease under this attempt; null for a late report: the attempt is not the current one, or not leased.
  const Grant* Find(const std::string& name, uint32_t attempt) const;
  // Its end is decided. False when there is no such lease, or it is not held: its end was decided before.
  bool Settle(const std::string& name, uint32_t attempt);
  // Its end could not be written: it is held as before.
  void Unsettle(const std::string& name, uint32_t attempt, double now);
  // Ends a lease with a result. False for a late report.
  bool Finish(const std::string& name, uint32_t attempt);
  // Ends a lease without a result: the trial waits again, at the head. `blamed` counts a loss.
  bool Return(const std::string& name, uint32_t attempt, bool blamed);

  // Held leases, in the order of names, which is the order of the search.
  std::vector<Grant> HeldBy(const std::string& holder) const;
  std::vector<Grant> HeldOf(const std::string& job) const;
  std::vector<Grant> Overdue(double now) const;

  // Forgets the waiting trials of a job; leased ones may still finish.
  void DropWaiting(const std::string& job);
  // Forgets the leases too.
  void DropJob(const std::string& job);

  int64_t waiting() const { return waiting_; }
  int64_t waiting(const std::string& job) const;
  // Whatever their state.
  int64_t leased() const { return static_cast<int64_t>(leased_.size()); }
  int64_t leased_by(const std::string& holder) const { return CountOf(by_holder_, holder); }
  int64_t leased_of(const std::string& job) const { return CountOf(by_job_, job); }
  // Grows when a trial begins to wait: whoever found nothing may find something now.
  uint64_t additions() const { return additions_; }

 private:
  using Names = std::set<std::string>;
  using Index = std::unordered_map<std::string, Names>;

  static int64_t CountOf(const Index& index, const std::string& key);
  static void Forget(Index* index, const std::string& key, const std::string& name);
  Grant* FindLease(const std::string& name, uint32_t attempt);
  Grant* Insert(Grant grant);
  // From its old state, into one in which it runs out at `expires`, or into one in which it does not.
  void Hold(Grant* grant, double expires);
  void StopClock(Grant* grant, LeaseState state);
  std::optional<Grant> Take(const std::string& name, uint32_t attempt);
  std::vector<Grant> HeldAmong(const Names& names) const;

  const double lease_seconds_;
  using Line = std::pair<std::string, std::string>;  // job, target
  std::map<Line, std::deque<QueuedTrial>> lines_;    // without empty ones
  Line last_line_;                                   // that was served
  int64_t waiting_ = 0;
  uint64_t additions_ = 0;
  std::unordered_map<std::string, Grant> leased_;  // by trial
  Index by_holder_, by_job_;
  std::set<std::pair<double, std::string>> by_expiry_;  // the held ones
};

}  // namespace mycc
