// Counts the calls that are under way, and the sessions of workers, of each caller and in all. A call is
// memory: a Lease waits for a minute with its message. So their number, their bytes and the number of
// sessions are bounded, and a caller that has its share is refused while others are served. It also knows
// whose each session is: another caller cannot use it. Thread rule: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "base/mutex.h"

namespace mycc {

struct CallBounds {
  // 1,000 workers with 8 devices have 8,000 Lease calls that wait.
  int64_t calls_of_one = 10000, calls = 20000;
  int64_t bytes_of_one = int64_t{192} << 20, bytes = int64_t{256} << 20;
  int64_t sessions_of_one = 10000, sessions = 20000;
  // A session that was silent for so long is forgotten when another needs its place. The server forgets the
  // worker earlier than that.
  double silent_seconds = 600;
};

class CallLedger {
 public:
  explicit CallLedger(CallBounds bounds) : bounds_(bounds) {}

  // A call begins, and counts until End. ResourceExhausted says which bound it meets. Callers without a name
  // share the bounds in all alone.
  absl::Status Begin(const std::string& caller, int64_t bytes);
  void End(const std::string& caller, int64_t bytes);

  // Whether the caller may have one more session. ResourceExhausted otherwise.
  absl::Status CheckRoom(const std::string& caller, double now_seconds);
  void AddSession(const std::string& session, const std::string& worker, const std::string& caller,
                  double now_seconds);
  void RemoveSession(const std::string& session);
  // PermissionDenied when the session is another caller's. One that is not known passes: the server says so.
  absl::Status CheckSession(const std::string& session, const std::string& caller, double now_seconds);
  // The caller that registered the worker last; empty: unknown.
  std::string OwnerOf(const std::string& worker) const;

  // The calls under way of all callers, and their bytes.
  int64_t calls() const;
  int64_t bytes() const;

 private:
  struct Use {
    int64_t calls = 0, bytes = 0, sessions = 0;
  };
  struct Session {
    std::string worker, caller;
    double last_used;
  };

  void Remove(const std::string& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveSilent(double now_seconds) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(const std::string& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CallBounds bounds_;
  mutable Mutex mutex_;
  std::map<std::string, Use> uses_ ABSL_GUARDED_BY(mutex_);  // of callers that have any
  Use all_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Session> sessions_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::string> by_worker_ ABSL_GUARDED_BY(mutex_);  // sessions
};

}  // namespace mycc
