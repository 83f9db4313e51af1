#include "db/log_readers.h"

#include <utility>

#include "base/status.h"

namespace mycc {
namespace {

constexpr int kToLend = 4;

}  // namespace

absl::StatusOr<std::unique_ptr<LogReaders>> LogReaders::Open(const std::string& path, int threads,
                                                             const Deliver& deliver,
                                                             const DamageListener& on_damage) {
  std::unique_ptr<LogReaders> readers(new LogReaders(deliver));
  for (int i = 0; i < threads + kToLend; ++i) {
    MYCC_ASSIGN_OR_RETURN(std::unique_ptr<TuningLog> log, TuningLog::Open(path, OpenMode::kRead));
    if (on_damage) {
      log->OnDamage([deliver, on_damage](int64_t id, const absl::Status& why) {
        deliver([on_damage, id, why] { on_damage(id, why); });
      });
    }
    readers->logs_.push_back(std::move(log));
  }
  for (int i = 0; i < threads + kToLend; ++i) {
    TuningLog* const log = readers->logs_[static_cast<size_t>(i)].get();
    if (i < threads) {
      readers->threads_.emplace_back([self = readers.get(), log] { self->RunReader(log); });
    } else {
      const MutexLock lock(&readers->mutex_);
      readers->to_lend_.push_back(log);
    }
  }
  return readers;
}

LogReaders::~LogReaders() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
    while (lent_ > 0) changed_.Wait(&mutex_);
  }
  for (std::thread& thread : threads_) thread.join();
}

void LogReaders::Add(LogRead read, std::function<void()> done) {
  const MutexLock lock(&mutex_);
  queue_.push_back({std::move(read), std::move(done)});
  changed_.NotifyOne();
}

LogReaders::Loan LogReaders::Borrow() {
  const MutexLock lock(&mutex_);
  if (to_lend_.empty()) return Loan(nullptr, Return{this});
  TuningLog* const log = to_lend_.back();
  to_lend_.pop_back();
  ++lent_;
  return Loan(log, Return{this});
}

void LogReaders::Return::operator()(TuningLog* log) const {
  const MutexLock lock(&readers->mutex_);
  readers->to_lend_.push_back(log);
  --readers->lent_;
  if (readers->stopping_) readers->changed_.NotifyAll();
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
