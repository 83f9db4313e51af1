#include "db/log_writer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/cord.h"
#include "base/status.h"
#include "db/database.h"

namespace mycc {
namespace {

// The longest group: changes that are added meanwhile wait for all of it.
constexpr size_t kMostChanges = 512;

// This payload marks the error of a log that is gone.
constexpr char kGone[] = "mycc/log-gone";

}  // namespace

bool IsLogGone(const absl::Status& status) { return status.GetPayload(kGone).has_value(); }

absl::Status AsLogGone(absl::Status status) {
  status.SetPayload(kGone, absl::Cord());
  return status;
}

LogWriter::LogWriter(TuningLog* log, Deliver deliver)
    : log_(log), deliver_(std::move(deliver)), writer_([this] { RunWriter(); }) {}

LogWriter::~LogWriter() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  writer_.join();
}

void LogWriter::Add(LogWrite write, LogWriteDone done) {
  const MutexLock lock(&mutex_);
  queue_.push_back({std::move(write), std::move(done), absl::OkStatus()});
  changed_.NotifyAll();
}

void LogWriter::RunWriter() {
  while (true) {
    auto group = std::make_shared<std::vector<Change>>();
    {
      const MutexLock lock(&mutex_);
      while (queue_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (queue_.empty()) return;
      const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), kMostChanges));
      std::move(queue_.begin(), end, std::back_inserter(*group));
      queue_.erase(queue_.begin(), end);
    }
    CommitGroup(group.get());
    deliver_([group] {
      for (const Change& change : *group) change.done(change.status);
    });
  }
}

void LogWriter::CommitGroup(std::vector<Change>* group) {
  const absl::Status committed = MakeChanges(group);
  if (committed.ok()) return;
  // Nothing of the group is in the log. A change that was refused by itself keeps its own reason.
  for (Change& change : *group) {
    if (change.status.ok()) change.status = committed;
  }
}

absl::Status LogWriter::MakeChanges(std::vector<Change>* group) {
  if (const absl::Status in_place = log_->CheckInPlace(); !in_place.ok()) return AsLogGone(in_place);
  MYCC_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(log_->database()));
  for (Change& change : *group) {
    MYCC_ASSIGN_OR_RETURN(Transaction own, Transaction::Begin(log_->database()));
    change.status = change.write();
    if (change.status.ok() && own.is_open()) change.status = own.Commit();
    // A full disk, for one, makes SQLite roll back everything at once.
    if (!transaction.is_open()) {
      return change.status.ok() ? absl::UnavailableError("the log's transaction was rolled back")
                                : change.status;
    }
  }
  return transaction.Commit();
}

}  // namespace mycc
