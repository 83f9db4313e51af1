#include "server/call_ledger.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

absl::Status Full(int64_t have, const char* what, const std::string& whose) {
  return absl::ResourceExhaustedError(absl::StrCat(have, " ", what, whose.empty() ? "" : " of ", whose,
                                                   " are under way; expected fewer, try again later"));
}

}  // namespace

absl::Status CallLedger::Begin(const std::string& caller, int64_t bytes) {
  const MutexLock lock(&mutex_);
  if (all_.calls >= bounds_.calls) return Full(all_.calls, "calls", "");
  // One message alone is taken whatever its size: gRPC has bounded it.
  if (all_.bytes > 0 && all_.bytes + bytes > bounds_.bytes) return Full(all_.bytes, "bytes of calls", "");
  Use& use = uses_[caller];
  absl::Status refusal;
  if (!caller.empty() && use.calls >= bounds_.calls_of_one) refusal = Full(use.calls, "calls", caller);
  if (!caller.empty() && use.bytes > 0 && use.bytes + bytes > bounds_.bytes_of_one)
    refusal = Full(use.bytes, "bytes of calls", caller);
  if (refusal.ok()) {
    ++use.calls;
    use.bytes += bytes;
    ++all_.calls;
    all_.bytes += bytes;
  }
  Release(caller);
  return refusal;
}

void CallLedger::End(const std::string& caller, int64_t bytes) {
  const MutexLock lock(&mutex_);
  Use& use = uses_[caller];
  --use.calls;
  use.bytes -= bytes;
  --all_.calls;
  all_.bytes -= bytes;
  Release(caller);
}

void CallLedger::Release(const std::string& caller) {
  const auto found = uses_.find(caller);
  if (found != uses_.end() && found->second.calls == 0 && found->second.sessions == 0) uses_.erase(found);
}

absl::Status CallLedger::CheckRoom(const std::string& caller, double now_seconds) {
  const MutexLock lock(&mutex_);
  const auto is_full = [this, &caller]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = uses_.find(caller);
    const int64_t own = found == uses_.end() || caller.empty() ? 0 : found->second.sessions;
    return own >= bounds_.sessions_of_one || all_.sessions >= bounds_.sessions;
  };
  if (is_full()) RemoveSilent(now_seconds);
  if (!is_full()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(all_.sessions, " workers are registered, ",
                   caller.empty() ? "" : absl::StrCat(uses_[caller].sessions, " of them by ", caller, ", "),
                   "and the server takes no more; expected fewer, try again later"));
}

void CallLedger::AddSession(const std::string& session, const std::string& worker, const std::string& caller,
                            double now_seconds) {
  const MutexLock lock(&mutex_);
  // A worker has one session at a time.
  if (const auto earlier = by_worker_.find(worker); earlier != by_worker_.end())
    Remove(std::string(earlier->second));
  sessions_[session] = {worker, caller, now_seconds};
  by_worker_[worker] = session;
  ++uses_[caller].sessions;
  ++all_.sessions;
}

void CallLedger::RemoveSession(const std::string& session) {
  const MutexLock lock(&mutex_);
  Remove(session);
}

void CallLedger::Remove(const std::string& session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  const std::string caller = found->second.caller;
  by_worker_.erase(found->second.worker);
  sessions_.erase(found);
  --uses_[caller].sessions;
  --all_.sessions;
  Release(caller);
}

void CallLedger::RemoveSilent(double now_seconds) {
  std::vector<std::string> silent;
  for (const auto& [id, session] : sessions_) {
    if (now_seconds - session.last_used > bounds_.silent_seconds) silent.push_back(id);
  }
  for (const std::string& session : silent) Remove(session);
}

absl::Status CallLedger::CheckSession(const std::string& session, const std::string& caller,
                                      double now_seconds) {
  const MutexLock lock(&mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return absl::OkStatus();
  if (found->second.caller != caller) {
    return absl::PermissionDeniedError(absl::StrCat("the session is that of worker ", found->second.worker,
                                                    " of another caller; expected one's own"));
  }
  found->second.last_used = now_seconds;
  return absl::OkStatus();
}

std::string CallLedger::OwnerOf(const std::string& worker) const {
  const MutexLock lock(&mutex_);
  const auto found = by_worker_.find(worker);
  return found == by_worker_.end() ? "" : sessions_.at(found->second).caller;
}

int64_t CallLedger::calls() const {
  const MutexLock lock(&mutex_);
  return all_.calls;
}

int64_t CallLedger::bytes() const {
  const MutexLock lock(&mutex_);
  return all_.bytes;
}

}  // namespace mycc
