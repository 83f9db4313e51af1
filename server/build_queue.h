// The queue of builds for other hosts: GPU candidates of trials that wait to be measured are offered to
// build-only workers. An order is leased as a trial is (lease_queue.h), under a name and attempts of its own,
// but the log knows nothing of it: after a restart it is offered again. Jobs share the builders as they share
// the devices.
//
//   trial waits --> order waits --Lease--> being built --Built--> the trial is leased with what was built
//                       |                      |   `--a failure--> the trial ends without a device
//                       |                      `--three attempts without an end--> given up
//                       `--a device with nothing built to measure takes the trial: withdrawn
//
// A device never waits for builders in vain. A worker that builds what it measures leaves alone only what a
// builder is at, and that for no longer than a lease. A worker of the role `measure` waits while a builder of
// the trial's target lives, is not drained and asks for orders. It builds itself what is given up.
// Thread rule: thread-compatible. Time is an argument; no call blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "proto/worker.pb.h"
#include "server/lease_queue.h"
#include "server/worker_table.h"

namespace mycc {

class BuildQueue {
 public:
  // Listens to `trials`. Both outlive the queue.
  BuildQueue(double lease_seconds, LeaseQueue* trials, WorkerTable* workers);
  BuildQueue(const BuildQueue&) = delete;
  BuildQueue& operator=(const BuildQueue&) = delete;

  // The name of a trial's order, and back; empty for another text.
  static std::string OrderOf(const std::string& trial);
  static std::string TrialOf(const std::string& order);

  // Whether a device of this session may take an unbuilt trial now, to build it itself. The function is for
  // one call of LeaseQueue::Lease.
  std::function<bool(const QueuedWork& trial)> MayBuild(const WorkerTable::Session& session,
                                                        double now) const;

  // Leases up to `count` orders to a session that builds.
  std::vector<Grant> Lease(const WorkerTable::Session& session, int count,
                           const std::function<bool(const std::string& job)>& is_leasable, double now);
  // Leases the order of a trial that waits to be built, for a build that is there already.
  std::optional<Grant> LeaseAgain(const WorkerTable::Session& session, const std::string& job,
                                  const std::string& target, const std::string& trial, double now);
  const Grant* Find(const v1::LeaseId& lease) const;
  bool Renew(const v1::LeaseId& lease, const std::string& session, double now);
  bool Rebind(const v1::LeaseId& lease, const std::string& session, double now);

  // The end of an order is being decided beside the deciding thread; the lease does not end meanwhile.
  // False when it is being decided already.
  bool BeginEnd(const Grant& order);
  // It could not be decided: the order is held as before.
  void AbortEnd(const Grant& order, double now);
  // The functions below end an order, and ignore one that has ended.
  // The worker has built it.
  void Built(const Grant& order, const std::string& worker);
  // It is over, also for the trial.
  void Drop(const Grant& order);
  // Nobody has it; nobody is blamed.
  void Return(const Grant& order);
  // It was not built, through no fault of the candidate's that is known: others try first. A worker that was
  // lost with it (`lost`) makes it a suspect.
  void ReturnElsewhere(const Grant& order, bool lost, FailedTry failed, double now);
  // No builder will have it.
  void GiveUp(const Grant& order);

  // Returns what a session holds that is gone or was replaced.
  void ReturnAllOf(const std::string& session);
  // Ends the leases that ran out.
  void Tick(double now);
  // Takes back the orders of a job. Their holders are told with their next answers.
  void Revoke(const std::string& job);

  int64_t waiting() const { return orders_.waiting(); }
  int64_t leased_by(const std::string& session) const { return orders_.leased_by(session); }
  // Grows when an order begins to wait.
  uint64_t additions() const { return orders_.additions(); }

 private:
  void OnWaiting(const QueuedWork& trial);
  void OnGone(const QueuedWork& trial);
  bool MayTry(const std::string& worker, const QueuedWork& order, double now) const;
  void LoseAllOf(const WorkerTable::Session& session, double now);

  LeaseQueue* const trials_;
  WorkerTable* const workers_;
  LeaseQueue orders_;
  std::set<std::string> given_up_;  // trials that wait, which no builder will have
};

}  // namespace mycc
