// A farm in simulated time: the server's own code between hosts that take recorded times to build and to
// measure. The clock stands still while the server decides, and moves from one event to the next.
//
//   as it is:  server (queues, leases, artifacts, log), the search, the order of proposals
//   recorded:  what a build and a measurement take, and which builds fail
//   assumed:   what a call, a commit and the linking of a built kernel take (Assumptions)
//   measured:  what the search takes: its CPU time here moves the simulated clock
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_folder.h"
#include "db/tuning_log.h"
#include "server/coordinator.h"
#include "server/time_source.h"

namespace mycc {

// Seconds.
struct Assumptions {
  double call = 0.001;    // one way
  double commit = 0.004;  // of a group of changes to the log
  double link = 0.04;     // a kernel that another host built; the mean on an H200's host
};

class SimulatedTime final : public TimeSource {
 public:
  double Seconds() const override { return now_; }
  int64_t UnixMicros() const override { return static_cast<int64_t>(1e6 * (kStart + now_)); }
  void Set(double now) { now_ = now; }

 private:
  static constexpr double kStart = 1.7e9;
  double now_ = 0;
};

// The server, and the events to come.
class FarmSimulation {
 public:
  explicit FarmSimulation(const Assumptions& assumptions);
  FarmSimulation(const FarmSimulation&) = delete;
  FarmSimulation& operator=(const FarmSimulation&) = delete;

  const Assumptions& assumptions() const { return assumptions_; }
  double now() const { return time_.Seconds(); }
  Coordinator& server() { return *coordinator_; }
  // Calls `event` after `seconds`.
  void After(double seconds, std::function<void()> event);
  // Lets events happen until `holds`, or until `most_seconds` have passed: false.
  bool RunUntil(const std::function<bool()>& holds, double most_seconds);

  double search_seconds() const { return search_seconds_; }

 private:
  struct Event {
    double at;
    uint64_t number;  // events of one moment happen in their order
    std::function<void()> run;
    bool operator<(const Event& other) const {
      return std::tie(other.at, other.number) < std::tie(at, number);  // the earliest is on top
    }
  };

  const Assumptions assumptions_;
  const TemporaryFolder folder_;
  SimulatedTime time_;
  std::priority_queue<Event> events_;
  uint64_t added_ = 0;
  double search_seconds_ = 0;
  std::unique_ptr<TuningLog> log_;
  std::unique_ptr<Coordinator> coordinator_;
};

// The recorded times of a candidate.
struct RecordedTrial {
  double build_seconds = 0, run_seconds = 0;
  bool builds = true;
};

// The recorded trials of each workload, in order. A trial that is met for the first time takes the next one.
class RecordedTrials {
 public:
  // The lines of compile_farm_h200.txt.
  explicit RecordedTrials(const std::string& text);

  // `trial`: its name, or that of its order. The tasks of the job are the recorded workloads, in order.
  const RecordedTrial& Of(const std::string& trial);
  int64_t size() const { return size_; }
  double build_seconds() const;
  double run_seconds() const;
  // The seconds of the slowest build.
  double longest_build() const;

 private:
  std::vector<std::string> workloads_;  // names, in order
  std::map<std::string, std::vector<RecordedTrial>> trials_;
  std::map<std::string, size_t> next_;
  std::map<std::string, const RecordedTrial*> met_;  // by trial
  int64_t size_ = 0;
};

// The simulated workers: a host with `cores` builders, and a device where its role has one.
class SimulatedHost {
 public:
  SimulatedHost(FarmSimulation* farm, RecordedTrials* trials, std::string name, v1::WorkerRole role,
                int cores, const std::string& target);

  // Trials with a result in the log: measured here, or ended by a build here that failed.
  int64_t finished() const { return finished_; }
  int64_t built() const { return built_; }
  double busy_seconds() const { return busy_seconds_; }  // of the device

 private:
  // One thing that a builder does.
  struct Job {
    double seconds;
    std::function<void()> done;
  };
  void Register(const std::string& target);
  void Beat();
  void LeaseOrders();
  void Build(const v1::BuildOrder& order);
  void ReportBuild(const v1::BuildReport& report);
  void LeaseTrials();
  void Take(const v1::LeaseResponse& leased);
  void Measure(const v1::Assignment& assignment, const std::shared_ptr<int>& open);
  void ReportTrial(const v1::Assignment& assignment);
  // Gives a free builder something to do, now or later.
  void Start(Job job);
  void StartNext();
  void RunNext();
  template <typename Request>
  Request Named() const;

  using Lease = std::pair<std::string, uint32_t>;  // trial, attempt

  FarmSimulation* const farm_;
  RecordedTrials* const trials_;
  const std::string name_;
  const v1::WorkerRole role_;
  const int cores_;
  std::string session_;
  std::map<Lease, v1::LeaseId> held_;
  std::queue<Job> to_build_, to_run_;
  int building_ = 0;
  bool running_ = false;
  int64_t finished_ = 0, built_ = 0;
  double busy_seconds_ = 0;
};

}  // namespace mycc
