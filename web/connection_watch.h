// Finds connections that take too long: a client that sends its request, or takes its answer, a byte at a
// time would otherwise keep its place for hours. While the server works on an answer, the time is not the
// client's. Thread rule: thread-safe. Time is an argument, in seconds.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"

namespace mycc {

class ConnectionWatch {
 public:
  // The longest that a client may take for a request, from the connection's begin or the last answer, and for
  // an answer.
  ConnectionWatch(double receive_seconds, double send_seconds)
      : receive_seconds_(receive_seconds), send_seconds_(send_seconds) {}

  void OnReceiving(int socket, double now) { SetDeadline(socket, now + receive_seconds_); }
  void OnAnswering(int socket) { Remove(socket); }
  void OnSending(int socket, double now) { SetDeadline(socket, now + send_seconds_); }
  void Remove(int socket);
  // Calls `end` with each socket whose time is over, once. The socket stays open during the call.
  template <typename End>
  void EndOverdue(double now, const End& end) {
    const MutexLock lock(&mutex_);
    for (auto entry = deadlines_.begin(); entry != deadlines_.end();) {
      if (entry->second > now) {
        ++entry;
        continue;
      }
      end(entry->first);
      entry = deadlines_.erase(entry);
    }
  }

 private:
  void SetDeadline(int socket, double deadline);

  const double receive_seconds_, send_seconds_;
  Mutex mutex_;
  std::unordered_map<int, double> deadlines_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mycc
