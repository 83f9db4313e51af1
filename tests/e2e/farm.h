// A farm of real processes whose results are recorded (tests/e2e/recorded.h): one server, some workers, and
// one job, which a test disturbs. The outcome is compared with the same job undisturbed. Thread rule:
// thread-compatible.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/tuning.pb.h"
#include "tests/e2e/mycc_tune.h"
#include "tests/e2e/proxy.h"
#include "tests/server/fake_server.h"

namespace mycc {

struct FarmOptions {
  uint64_t seed = 1;  // of the job
  uint32_t trials = 32;
  int workers = 2;
  double lease_seconds = 20;
  bool connects_by_proxy = false;        // workers to the server: proxy()
  std::vector<std::string> environment;  // of all processes: "NAME=value"
  std::string log_folder;                // with the log; empty: the farm's own
  bool has_one_clock = true;             // the server's and the runners' wall clocks agree
};

// The results that a job left in the log.
struct JobOutcome {
  std::map<std::string, std::string> trials;  // task/generation/index -> trace, status and time
  std::string best;                           // the trace that `best` shows
  int given_up = 0;                           // trials that cost too many workers
};

class Farm {
 public:
  explicit Farm(FarmOptions options);

  // Starts what does not run.
  void StartServer();
  void StartWorker(int index);
  void Start();
  // Submits the job, also to a server that is still starting.
  void Submit();
  // The job as the server has it; an error while there is no server.
  absl::StatusOr<v1::JobProgress> Progress() const;
  // Waits until `trials` have finished, or the job has ended; false after `seconds`.
  bool WaitForTrials(int64_t trials, double seconds) const;
  // Waits for the job's end. False after `seconds`.
  bool WaitForEnd(double seconds) const;
  // Stops all in order, and reads the log. Expects the job to be done, each trial to have one record, and no
  // run of a trial to have begun after its result was recorded.
  JobOutcome End();

  Background* server() { return server_.get(); }
  Background* worker(int index) { return workers_[static_cast<size_t>(index)].get(); }
  void KillServer();
  void KillWorker(int index);

  Proxy* proxy() { return proxy_.get(); }
  const std::string& log() const { return log_; }
  std::string Path(const std::string& name) const { return folder_.Path(name); }
  std::string Said() const { return ReadAll(output_); }

 private:
  v1::JobSpec Spec() const;
  // With the farm's variables, and others.
  std::unique_ptr<Background> Begin(const std::vector<std::string>& arguments,
                                    std::vector<std::string> variables) const;
  JobOutcome ReadOutcome() const;
  void ExpectNoRunAfterItsRecord() const;

  const FarmOptions options_;
  TestFolder folder_;
  const std::string address_ = "unix:" + folder_.Path("socket"),
                    log_ = options_.log_folder.empty() ? folder_.Path("tuning.db")
                                                       : options_.log_folder + "/tuning.db",
                    runs_ = folder_.Path("runs"), output_ = folder_.Path("output");
  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<Background> server_;
  std::vector<std::unique_ptr<Background>> workers_;
  std::string job_;
};

// The job of these options, undisturbed; computed once for each seed and number of trials.
const JobOutcome& Undisturbed(uint64_t seed, uint32_t trials);
// Expects the same candidates, results and best.
void ExpectSame(const JobOutcome& disturbed, const JobOutcome& undisturbed);

// The descendants of a process whose program was started with this hidden command.
std::vector<pid_t> DescendantsOf(pid_t ancestor, const std::string& command);

}  // namespace mycc
