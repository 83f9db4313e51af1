#include "web/connection_watch.h"

namespace mycc {

void ConnectionWatch::SetDeadline(int socket, double deadline) {
  const MutexLock lock(&mutex_);
  deadlines_[socket] = deadline;
}

void ConnectionWatch::Remove(int socket) {
  const MutexLock lock(&mutex_);
  deadlines_.erase(socket);
}

}  // namespace mycc
