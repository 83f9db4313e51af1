#include "base/thread_team.h"

#include <algorithm>
#include <system_error>

namespace mycc {

ThreadTeam::~ThreadTeam() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& thread : others_) thread.join();
}

void ThreadTeam::SetWidth(int threads) { width_ = std::max(1, threads); }

void ThreadTeam::Run(size_t count, const std::function<void(size_t)>& call) {
  int helpers = static_cast<int>(std::min<size_t>(count, static_cast<size_t>(width_))) - 1;
  helpers = std::min(helpers, Grow(helpers));
  if (helpers <= 0) return ParallelFor::Run(count, call);
  {
    const MutexLock lock(&mutex_);
    call_ = &call;
    next_ = 0;
    count_ = count;
    helpers_ = helpers;
    changed_.NotifyAll();
  }
  TakeCalls();
  const MutexLock lock(&mutex_);
  while (at_work_ > 0) changed_.Wait(&mutex_);
  call_ = nullptr;
}

int ThreadTeam::Grow(int threads) {
  try {
    while (static_cast<int>(others_.size()) < threads)
      others_.emplace_back([this, number = static_cast<int>(others_.size())] { Serve(number); });
  } catch (const std::system_error&) {
    // Fewer threads make the same calls.
  }
  return static_cast<int>(others_.size());
}

void ThreadTeam::TakeCalls() {
  while (true) {
    const std::function<void(size_t)>* call = nullptr;
    size_t number = 0;
    {
      const MutexLock lock(&mutex_);
      if (next_ >= count_) return;
      call = call_;
      number = next_++;
      ++at_work_;
    }
    (*call)(number);
    const MutexLock lock(&mutex_);
    if (--at_work_ == 0 && next_ >= count_) changed_.NotifyAll();
  }
}

void ThreadTeam::Serve(int number) {
  while (true) {
    {
      const MutexLock lock(&mutex_);
      while (!stopping_ && (number >= helpers_ || next_ >= count_)) changed_.Wait(&mutex_);
      if (stopping_) return;
    }
    TakeCalls();
  }
}

}  // namespace mycc
