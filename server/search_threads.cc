#include "server/search_threads.h"

#include <algorithm>
#include <utility>

namespace mycc {

SearchThreads::SearchThreads(Options options) : options_(std::move(options)) {
  const int cpus = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int threads = options_.threads > 0 ? options_.threads : cpus;
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { RunWorks(); });
}

void SearchThreads::Add(std::function<void()> work, std::function<void()> done) {
  const MutexLock lock(&mutex_);
  if (stopping_) return;
  queue_.push_back({std::move(work), std::move(done)});
  changed_.NotifyOne();
}

void SearchThreads::Stop() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    queue_.clear();
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void SearchThreads::RunWorks() {
  while (true) {
    Work next;
    {
      const MutexLock lock(&mutex_);
      while (queue_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    if (options_.around) {
      options_.around(next.work);
    } else {
      next.work();
    }
    next.work = nullptr;
    options_.deliver(std::move(next.done));
  }
}

}  // namespace mycc
