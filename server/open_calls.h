// The calls that were admitted and are not over, apart from the network that brought them. A call ends once,
// by whichever thread claims it: with its answer, or with a refusal when its caller's access ends while it
// waits. After that nobody touches its line any more. Thread rule: thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "server/access.h"
#include "server/call_ledger.h"

namespace mycc {

// The way back to the one who calls. The first two are called while nobody has claimed the call, by one
// thread at a time; `finish` once, afterwards.
struct CallLine {
  std::function<bool()> is_cancelled;
  std::function<absl::StatusOr<Caller>()> caller;  // as the files have it now
  std::function<void(const absl::Status&)> finish;
};

class OpenCall {
 public:
  OpenCall(std::string name, Caller caller, int64_t bytes, CallLine line)
      : name_(std::move(name)), caller_(std::move(caller)), bytes_(bytes), line_(std::move(line)) {}

  const Caller& caller() const { return caller_; }
  int64_t bytes() const { return bytes_; }
  // Whether the caller still waits.
  bool IsAlive() const;
  bool IsClaimed() const;
  // Whether the caller may still make this call.
  absl::Status Check() const;
  // True for one thread alone: it then calls Finish.
  bool Claim();
  void Finish(const absl::Status& status) const { line_.finish(status); }

 private:
  const std::string name_;
  const Caller caller_;
  const int64_t bytes_;
  const CallLine line_;
  mutable Mutex mutex_;
  bool claimed_ ABSL_GUARDED_BY(mutex_) = false;
};

class OpenCalls {
 public:
  explicit OpenCalls(CallBounds bounds) : ledger_(bounds) {}

  // ResourceExhausted: the caller, or all of them, have too many calls under way.
  absl::StatusOr<std::shared_ptr<OpenCall>> Begin(const std::string& name, const Caller& caller,
                                                  int64_t bytes, CallLine line);
  // REQUIRES: this thread has claimed the call.
  void End(const OpenCall& call);
  // Ends those whose callers may not make them any more.
  void CheckAgain();

  CallLedger& ledger() { return ledger_; }

 private:
  CallLedger ledger_;
  Mutex mutex_;
  std::map<const OpenCall*, std::weak_ptr<OpenCall>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mycc
