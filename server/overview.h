// A look at the whole server at one moment, for its web page and metrics: what the deciding thread holds in
// memory. Thread rule: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/tuning.pb.h"
#include "server/queue_view.h"
#include "server/service_counters.h"

namespace mycc {

struct Overview {
  int64_t running_jobs = 0, waiting_jobs = 0;
  int64_t waiting_trials = 0, leased_trials = 0;
  // Lists have a bounded length; the sums above count everything.
  std::vector<QueueLine> lines;
  std::vector<QueueLease> leases;  // the holders are workers' names
  std::vector<v1::DeviceStatus> devices;
  std::string trouble;  // why the log cannot be written now; empty: it can be
  ServiceCounters counters;
};

}  // namespace mycc
