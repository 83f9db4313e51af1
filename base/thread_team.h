// Threads that divide calls among them (parallel_for.h). They begin with the first Run that needs them, and
// sleep between two of them. Where the system allows no more threads, a Run makes do with those that there
// are: its calls are the same. Thread rule: thread-compatible.
#pragma once

#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/parallel_for.h"

namespace mycc {

class ThreadTeam final : public ParallelFor {
 public:
  // The thread that calls Run is one of them.
  explicit ThreadTeam(int threads = 1) { SetWidth(threads); }
  ~ThreadTeam() override;
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // The number of threads that the next Runs use, at least 1. Those that are more than that go on sleeping.
  void SetWidth(int threads);
  int width() const override { return width_; }
  void Run(size_t count, const std::function<void(size_t)>& call) override;

 private:
  // Begins threads until there are `threads` or the system allows no more; returns how many there are.
  int Grow(int threads);
  // The thread with this number waits for Runs that have a part for it.
  void Serve(int number);
  // Makes calls until none is left.
  void TakeCalls() ABSL_LOCKS_EXCLUDED(mutex_);

  int width_ = 1;
  std::vector<std::thread> others_;
  Mutex mutex_;
  CondVar changed_;
  const std::function<void(size_t)>* call_ ABSL_GUARDED_BY(mutex_) = nullptr;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0, count_ ABSL_GUARDED_BY(mutex_) = 0;
  int helpers_ ABSL_GUARDED_BY(mutex_) = 0;  // of the Run under way
  int at_work_ ABSL_GUARDED_BY(mutex_) = 0;  // calls under way
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mycc
