// Threads that wait for the answers of searches, one search at a time each, and hand them to the deciding
// thread. Thread rule: thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace mycc {

class SearchThreads {
 public:
  struct Options {
    int threads = 0;  // 0: one a CPU
    // Surrounds each work: keeps it quiet while a worker on the same host times something. May be null.
    std::function<void(const std::function<void()>&)> around;
    // Calls a function on the thread that waits for answers.
    std::function<void(std::function<void()>)> deliver;
  };

  explicit SearchThreads(Options options);
  ~SearchThreads() { Stop(); }
  SearchThreads(const SearchThreads&) = delete;
  SearchThreads& operator=(const SearchThreads&) = delete;

  // `work` runs on one of the threads, `done` where `deliver` takes it.
  void Add(std::function<void()> work, std::function<void()> done);
  // Ends the work that has begun. Other work, also if it is added later, is forgotten: it is in the log,
  // and begins again with the next server.
  void Stop();

 private:
  struct Work {
    std::function<void()> work, done;
  };
  void RunWorks();

  const Options options_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Work> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace mycc
