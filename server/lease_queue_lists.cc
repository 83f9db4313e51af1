// The contents of the lease queue, for people.
#include <algorithm>

#include "server/lease_queue.h"

namespace mycc {
namespace {

const char* NameOf(LeaseState state) {
  switch (state) {
    case LeaseState::kGranting: return "granting";
    case LeaseState::kHeld: return "held";
    case LeaseState::kCommitting: return "committing";
  }
  return "";
}

}  // namespace

std::vector<QueueLine> LeaseQueue::ListLines(size_t limit) const {
  std::vector<QueueLine> lines;
  for (const auto& [line, work] : lines_) {
    if (lines.size() >= limit) break;
    lines.push_back({line.first, line.second, work.size(), static_cast<int64_t>(work.apart.size())});
  }
  return lines;
}

std::vector<QueueLease> LeaseQueue::ListLeases(size_t limit, double now) const {
  std::vector<QueueLease> leases;
  for (const auto& [name, grant] : leased_) {
    if (leases.size() >= limit) break;
    leases.push_back({.trial = name,
                      .job = grant.work.job,
                      .target = grant.work.target,
                      .holder = grant.holder,
                      .device = grant.device,
                      .state = NameOf(grant.state),
                      .attempt = grant.work.attempt,
                      .expires_in_seconds = grant.state == LeaseState::kHeld ? grant.expires - now : 0});
  }
  std::ranges::sort(leases, [](const QueueLease& a, const QueueLease& b) { return a.trial < b.trial; });
  return leases;
}

int64_t LeaseQueue::waiting(const std::string& job) const {
  int64_t trials = 0;
  for (auto line = lines_.lower_bound({job, ""}); line != lines_.end() && line->first.first == job; ++line)
    trials += line->second.size();
  return trials;
}

}  // namespace mycc
