// The one thread that changes a tuning log while it is served. Changes that are added while a commit is under
// way are committed together by the next commit, and a group of changes waits for the disk once.
//
//   any thread --Add(write, done)--> queue --> writer thread: BEGIN; write; write; ... COMMIT
//                       done(status) <--deliver--'
//
// Each change gets its own answer. A change that fails is undone alone. When a commit fails, all changes of
// the group are undone, and each is answered with the reason; the caller still has what it wanted to write,
// and may add it again. Thread rule: thread-safe. While a LogWriter lives, no other code uses its log;
// readers open a TuningLog of their own with OpenMode::kRead.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "db/tuning_log.h"

namespace mycc {

// Changes the log and returns the result. Its transactions become parts of the group's.
using LogWrite = std::function<absl::Status()>;
// Called once, when the change survives a crash or with the reason why it was not made.
using LogWriteDone = std::function<void(const absl::Status&)>;
// Makes a change, now or later, and then calls `done`, in the order of the calls.
using WriteExecutor = std::function<void(LogWrite write, LogWriteDone done)>;

// Whether a change was not made because the log's file is gone from its place (TuningLog::CheckInPlace): then
// no later one will be made.
bool IsLogGone(const absl::Status& status);
// Marks an error so.
absl::Status AsLogGone(absl::Status status);

class LogWriter {
 public:
  // Calls a function on the thread that waits for answers.
  using Deliver = std::function<void(std::function<void()>)>;

  // `log` is open for writing and outlives the writer.
  LogWriter(TuningLog* log, Deliver deliver);
  // Makes every change that was added, delivers the answers, and ends.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // `write` runs on the writer's thread, `done` where `deliver` takes it.
  void Add(LogWrite write, LogWriteDone done);

 private:
  struct Change {
    LogWrite write;
    LogWriteDone done;
    absl::Status status;
  };

  void RunWriter();
  void CommitGroup(std::vector<Change>* group);
  absl::Status MakeChanges(std::vector<Change>* group);

  TuningLog* const log_;
  const Deliver deliver_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Change> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread writer_;
};

}  // namespace mycc
