// The metrics of a server, in Prometheus's text format. docs/monitoring.md lists them for people. Pure
// functions.
#pragma once

#include <cstdint>
#include <string>

#include "db/log_views.h"
#include "server/latency.h"
#include "server/overview.h"

namespace mycc {

struct ProcessFacts {
  double started_unix_seconds = 0;
  double resident_bytes = 0;  // 0: unknown
  double open_files = 0;      // likewise
};
// Reads this process's; `started_unix_micros` is the server's.
ProcessFacts ReadProcessFacts(int64_t started_unix_micros);

std::string MetricsText(const Overview& overview, const LogFacts& log, const LoopLatencies& latencies,
                        const ProcessFacts& process);

}  // namespace mycc
