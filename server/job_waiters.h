// Counts the clients that wait for each job. A client says when it leaves; a silent client stops counting
// after a while. After a restart of the server, clients return with their next call. Thread rule:
// thread-compatible. Time is an argument.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace mycc {

class JobWaiters {
 public:
  // The client waits for the job until then, unless it is heard again.
  void Renew(const std::string& job, const std::string& client, double until, double now);
  void Leave(const std::string& job, const std::string& client);
  // The job has ended: it has no waiters any more.
  void Forget(const std::string& job) { jobs_.erase(job); }

  uint32_t Count(const std::string& job, double now) const;

 private:
  using Clients = std::map<std::string, double>;  // until when each counts
  std::map<std::string, Clients> jobs_;
};

}  // namespace mycc
