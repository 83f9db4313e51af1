// Builds candidates, several at a time: each builder is a thread with a fork server (fork_server.h) of its
// own. Thread rule: thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "process/confine.h"
#include "proto/measure.pb.h"
#include "worker/outcome.h"

namespace mycc {

// The end of a build: a library, or how it failed.
struct BuildOutcome {
  Ending ending = {v1::MEASURE_STATUS_OK, ""};
  v1::BuildResponse built;
  double seconds = 0;

  bool ok() const { return ending.status == v1::MEASURE_STATUS_OK; }
};

struct BuildLimits {
  double wall_seconds = 20;
  int64_t address_space_bytes = int64_t{8} << 30;
  int64_t file_bytes = int64_t{256} << 20;
};

// One thing to build.
struct BuildWork {
  v1::BuildRequest request;
  // Called when the work's turn comes, and while it waits for the host's lock; null: always wanted.
  std::function<bool()> is_wanted;
  // Called on a builder's thread; nullopt when the work was not wanted.
  std::function<void(std::optional<BuildOutcome>)> done;
};

class BuildPool {
 public:
  // `worker`: how its children are confined (worker/confined_children.h).
  BuildPool(int builders, BuildLimits limits, Confinement worker = {});
  // Work that has not begun is dropped: its `done` is called with nullopt.
  ~BuildPool();
  BuildPool(const BuildPool&) = delete;
  BuildPool& operator=(const BuildPool&) = delete;

  // From now on builders may write to the folder; until then, confined ones cannot.
  void LetWriteTo(const std::string& folder);
  // Starts the processes of a few builders, so that they are ready when there is work. REQUIRES: the folders
  // are known.
  void WarmUp();
  // Puts the work at the end of the line, or at its head.
  void Start(BuildWork work, bool first = false);
  // Builds all and returns when the last is done; outcomes in the order of the requests. A request
  // that is no longer wanted when its turn comes is not built, and ends as WORKER_UNFIT; null: all are
  // wanted.
  std::vector<BuildOutcome> BuildAll(const std::vector<v1::BuildRequest>& requests,
                                     const std::function<bool()>& is_wanted = nullptr);

 private:
  // Waits for work, or for a builder without a process to be asked to start it: nullopt. `wanted`: the pool
  // does not stop.
  std::optional<BuildWork> NextWork(bool is_cold, std::vector<std::string>* folders, bool* wanted);
  void RunBuilder();

  const BuildLimits limits_;
  const Confinement worker_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<BuildWork> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> folders_ ABSL_GUARDED_BY(mutex_);  // to which builders write
  int to_warm_ ABSL_GUARDED_BY(mutex_) = 0;                   // builders whose processes are to be started
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> builders_;
};

}  // namespace mycc
