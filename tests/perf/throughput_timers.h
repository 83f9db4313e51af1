// Calls functions later, on one thread: the time that simulated trials take. Thread rule: thread-safe; a call
// must not block.
#pragma once

#include <chrono>
#include <functional>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace mycc {

class Timers {
 public:
  using Clock = std::chrono::steady_clock;

  Timers() : thread_([this] { Run(); }) {}
  ~Timers() {
    {
      const MutexLock lock(&mutex_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }

  void At(Clock::time_point time, std::function<void()> call) {
    const MutexLock lock(&mutex_);
    calls_.push({time, std::move(call)});
    changed_.NotifyOne();
  }
  void After(double seconds, std::function<void()> call) {
    At(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)),
       std::move(call));
  }

 private:
  struct Call {
    Clock::time_point time;
    std::function<void()> call;
    bool operator<(const Call& other) const { return time > other.time; }  // the earliest is on top
  };

  void Run() {
    while (true) {
      std::function<void()> call;
      {
        const MutexLock lock(&mutex_);
        while (!stopping_ && (calls_.empty() || calls_.top().time > Clock::now())) {
          if (calls_.empty()) {
            changed_.Wait(&mutex_);
          } else {
            changed_.WaitUntil(&mutex_, calls_.top().time);
          }
        }
        if (stopping_) return;
        call = calls_.top().call;
        calls_.pop();
      }
      call();
    }
  }

  Mutex mutex_;
  CondVar changed_;
  std::priority_queue<Call> calls_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace mycc
