#include "server/job_waiters.h"

#include <algorithm>

namespace mycc {

void JobWaiters::Renew(const std::string& job, const std::string& client, double until, double now) {
  Clients& clients = jobs_[job];
  std::erase_if(clients, [now](const auto& known) { return known.second <= now; });
  clients[client] = until;
}

void JobWaiters::Leave(const std::string& job, const std::string& client) {
  const auto found = jobs_.find(job);
  if (found != jobs_.end()) found->second.erase(client);
}

uint32_t JobWaiters::Count(const std::string& job, double now) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return 0;
  return static_cast<uint32_t>(
      std::ranges::count_if(found->second, [now](const auto& client) { return client.second > now; }));
}

}  // namespace mycc
