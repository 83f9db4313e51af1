// Decides whose trial a device gets next. The rule:
//
//   1. The job with the highest priority comes first.
//   2. Among jobs of one priority, the owner comes first whose jobs used the least device time lately; among
//      an owner's jobs, the job that did. A trial under way counts with the time that the job's trials take
//      on average, so a hundred devices that ask at once are shared as well.
//   3. Every 16th trial of the devices of one target goes to the job that has waited longest for its turn,
//      whatever its priority. So no job starves: of n jobs that wait for such devices, each has a trial
//      among 16 n.
//   4. Jobs that run only when the farm is idle come after all these, and rule 3 leaves them out.
//
// "Lately" has a half-life of 5 minutes. An owner that comes, or comes back after a minute, starts level with
// the owner that used the least: it gets its share from now on, and nothing for the time before. The same
// holds for a new job among those of its owner. An unknown job belongs to the owner "" at priority 0. Each
// call costs O(log n) beside the jobs that are offered and not taken. Thread rule: thread-compatible. Time is
// an argument, in seconds, and does not go back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "server/job_terms.h"

namespace mycc {

class FairShare {
 public:
  // The terms of a job. REQUIRES: its owner is the same while it has trials that wait or are under way.
  void SetTerms(const std::string& job, const JobTerms& terms, double now);
  // The job has ended; its owner's account stays.
  void Forget(const std::string& job, double now);
  // Whether trials of the job wait for a device.
  void SetWaiting(const std::string& job, bool waits, double now);

  enum class Which { kOrdinary, kIdleOnly };
  // Offers the jobs that wait in the order of the rule until `take` takes one, which has had its turn then.
  // `pool` names the devices whose turns rule 3 counts. `take` may call SetWaiting when it returns true.
  bool Offer(Which which, const std::string& pool, const std::function<bool(const std::string& job)>& take);

  // A trial of the job is under way. Returns the seconds that the owner is charged for it until it ends.
  double Charge(const std::string& job, double now);
  // It has ended after `spent` seconds; nullopt: without a result, which costs nothing.
  void Settle(const std::string& job, double charged, std::optional<double> spent, double now);

 private:
  // Device time, in seconds of the moment `origin_`: later seconds weigh more, so that old ones need not be
  // made to fade.
  using Ordered = std::set<std::pair<double, std::string>>;  // by what they used
  struct Account {
    double used = 0;
    double idle_since = 0;
    bool is_known = false;  // it was active before
  };
  struct JobAccount : Account {
    JobTerms terms;
    bool waits = false;
    int under_way = 0;
    double mean_seconds = 1;    // of its trials lately
    uint64_t waiting_from = 0;  // the number of the turn since which it waits

    bool is_active() const { return waits || under_way > 0; }
  };
  struct Owner : Account {
    std::set<std::string> jobs;
    Ordered active;                  // of them
    std::map<int, Ordered> waiting;  // of them, by class
  };

  static int ClassOf(const JobTerms& terms);
  double Weight(double now);
  JobAccount& JobOf(const std::string& job);
  // Takes the job and its owner out of all orders, changes them, and puts them in again.
  void Change(const std::string& name, double now, const std::function<void(JobAccount*, Owner*)>& change);
  void TakeOut(const std::string& name, const JobAccount& job);
  void PutIn(const std::string& name, const JobAccount& job);
  void PutIn(const std::string& name, const Owner& owner);
  static void BeginLevel(Account* account, const Ordered& rivals, double now);

  std::map<std::string, JobAccount> jobs_;
  std::map<std::string, Owner> owners_;
  Ordered active_;                                         // owners
  std::map<int, Ordered, std::greater<>> classes_;         // owners with waiting jobs, by class
  std::set<std::pair<uint64_t, std::string>> by_waiting_;  // jobs, but for the idle ones: rule 3
  std::map<std::string, uint64_t> turns_of_pool_;
  uint64_t turns_ = 0;
  double origin_ = 0;
};

}  // namespace mycc
