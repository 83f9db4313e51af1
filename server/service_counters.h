// Counts what happened since the server's start, for metrics. The deciding thread's own. Thread rule:
// thread-compatible.
#pragma once

#include <cstdint>
#include <map>

#include "proto/records.pb.h"

namespace mycc {

struct ServiceCounters {
  std::map<v1::MeasureStatus, int64_t>
      trials;           // with a result in the log; the statuses of losses: handed out again
  int64_t refused = 0;  // reports, results and held leases
  int64_t search_crashes = 0;
};

}  // namespace mycc
