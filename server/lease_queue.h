// The trials that wait for a worker and those that workers hold. A grant raises the trial's attempt number,
// and a report must carry the current one: that fences the reports of workers whose lease ended.
//
//              Lease                Finish
//   waiting ----------> leased ---------------> (gone: its result is a record)
//      ^                  |  Return
//      '------------------'
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
};

// The holder of a lease from before the server started, until its worker registers again: this, and the
// worker's name.
inline constexpr char kAdoptedHolder[] = "before restart: ";

struct Grant {
  QueuedTrial trial;
  std::string holder;
  double expires = 0;
};

class LeaseQueue {
 public:
  explicit LeaseQueue(double lease_seconds) : lease_seconds_(lease_seconds) {}

  // To the end of the line of its job and target; `first` puts it at the head.
  void Add(QueuedTrial trial, bool first = false);
  // A trial that somebody already holds under trial.attempt, after a restart of the server, which its holder
  // has yet to find again: the lease is as much longer.
  void Adopt(QueuedTrial trial, const std::string& holder, double now);

  // Up to `count` trials of the lines that `fits` admits, which take turns; in a line the oldest first. A
  // suspect comes alone, and only to a holder without leases; a holder of a suspect gets nothing more.
  using Fits = std::function<bool(const std::string& job, const std::string& target)>;
  std::vector<Grant> Lease(const std::string& holder, int count, double now, const Fits& fits);
  // All leases of the holder last until now + lease_seconds.
  void Renew(const std::string& holder, double now);
  // The lease now belongs to another holder (a worker that registered again). False when this attempt no
  // longer stands.
  bool Rebind(const std::string& name, uint32_t attempt, const std::string& holder, double now);

  // The lease under this attempt; null for a late report: the attempt is not the current one, or not leased.
  const Grant* Find(const std::string& name, uint32_t attempt) const;
  // Ends a lease with a result. False for a late report.
  bool Finish(const std::string& name, uint32_t attempt);
  // Ends a lease without a result: the trial waits again, at the head. `blamed` counts a loss.
  bool Return(const std::string& name, uint32_t attempt, bool blamed);
  // As if the grant had not been made.
  void TakeBack(const Grant& grant);

  // In the order of names, which is the order of the search.
  std::vector<Grant> HeldBy(const std::string& holder) const;
  std::vector<Grant> Overdue(double now) const;
  std::vector<Grant> LeasedOf(const std::string& job) const;

  // Forgets the waiting trials of a job; leased ones may still finish.
  void DropWaiting(const std::string& job);
  // Forgets the leases too.
  void DropJob(const std::string& job);

  int64_t waiting() const { return waiting_; }
  int64_t waiting(const std::string& job) const;
  int64_t leased() const { return static_cast<int64_t>(leased_.size()); }
  int64_t leased_by(const std::string& holder) const;

 private:
  std::vector<Grant> Matching(const std::function<bool(const Grant&)>& matches) const;
  std::optional<Grant> Take(const std::string& name, uint32_t attempt);

  const double lease_seconds_;
  using Line = std::pair<std::string, std::string>;  // job, target
  std::map<Line, std::deque<QueuedTrial>> lines_;    // without empty ones
  Line last_line_;                                   // that was served
  int64_t waiting_ = 0;
  std::unordered_map<std::string, Grant> leased_;  // by trial
};

}  // namespace mycc
