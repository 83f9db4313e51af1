#include "db/log_readers.h"

#include <utility>

#include "base/status.h"

namespace mycc {

absl::StatusOr<std::unique_ptr<LogReaders>> LogReaders::Open(const std::string& path, int threads,
                                                             const Deliver& deliver,
                                                             const DamageListener& on_damage) {
  std::unique_ptr<LogReaders> readers(new LogReaders(deliver));
  for (int i = 0; i < threads; ++i) {
    MYCC_ASSIGN_OR_RETURN(std::unique_ptr<TuningLog> log, TuningLog::Open(path, OpenMode::kRead));
    if (on_damage) {
      log->OnDamage([deliver, on_damage](int64_t id, const absl::Status& why) {
        deliver([on_damage, id, why] { on_damage(id, why); });
      });
    }
    readers->logs_.push_back(std::move(log));
  }
  for (const std::unique_ptr<TuningLog>& log : readers->logs_)
    readers->threads_.emplace_back([self = readers.get(), log = log.get()] { self->RunReader(log); });
  return readers;
}

LogReaders::~LogReaders() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void LogReaders::Add(LogRead read, std::function<void()> done) {
  const MutexLock lock(&mutex_);
  queue_.push_back({std::move(read), std::move(done)});
  changed_.NotifyOne();
}

void LogReaders::RunReader(TuningLog* log) {
  while (true) {
    Request request;
    {
      const MutexLock lock(&mutex_);
      while (queue_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (queue_.empty()) return;
      request = std::move(queue_.front());
      queue_.pop_front();
    }
    request.read(log);
    request.read = nullptr;  // what it holds goes here, and not where answers are waited for
    if (request.done != nullptr) deliver_(std::move(request.done));
  }
}

}  // namespace mycc
