// Threads that read a tuning log beside its writer, each through its own connection. So a long look-up delays
// neither the server's deciding thread nor the writer. A read sees everything that was committed before it
// began. Thread rule: thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "db/tuning_log.h"

namespace mycc {

// Reads the log, which is open for reading.
using LogRead = std::function<void(TuningLog* log)>;
// Runs a read, now or later, and then calls `done`. Reads may end in another order than that of the
// calls.
using ReadExecutor = std::function<void(LogRead read, std::function<void()> done)>;

class LogReaders {
 public:
  // Calls a function on the thread that waits for answers.
  using Deliver = std::function<void(std::function<void()>)>;

  // The log's file must have a writer already, which outlives the readers.
  // `on_damage` is called where `deliver` takes it.
  static absl::StatusOr<std::unique_ptr<LogReaders>> Open(const std::string& path, int threads,
                                                          const Deliver& deliver,
                                                          const DamageListener& on_damage = nullptr);
  // Finishes every read that was added, delivers the answers, waits for what is lent, and ends.
  ~LogReaders();
  LogReaders(const LogReaders&) = delete;
  LogReaders& operator=(const LogReaders&) = delete;

  // `read` runs on a reader's thread, `done` where `deliver` takes it; `done` may be null.
  void Add(LogRead read, std::function<void()> done);

  // A connection for short reads of the caller's own thread, which saves the time until a reader's wakes up.
  // The readers outlive it.
  struct Return {
    void operator()(TuningLog* log) const;
    LogReaders* readers = nullptr;
  };
  using Loan = std::unique_ptr<TuningLog, Return>;
  // Null while all are lent.
  Loan Borrow();

 private:
  struct Request {
    LogRead read;
    std::function<void()> done;
  };

  explicit LogReaders(Deliver deliver) : deliver_(std::move(deliver)) {}
  void RunReader(TuningLog* log);

  const Deliver deliver_;
  std::vector<std::unique_ptr<TuningLog>> logs_;  // of the threads first, then those to be lent
  Mutex mutex_;
  CondVar changed_;
  std::deque<Request> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<TuningLog*> to_lend_ ABSL_GUARDED_BY(mutex_);
  size_t lent_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace mycc
