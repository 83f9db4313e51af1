// The answers of /api/v1 as JSON. Messages of the wire are written as `mycc-tune ... --json` writes them
// (db/message_json.h); times are in seconds, dates in microseconds since 1970. Pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "db/log_views.h"
#include "proto/tuning.pb.h"
#include "server/device_history.h"
#include "server/overview.h"
#include "web/convergence.h"

namespace mycc {

using Json = nlohmann::ordered_json;

// Text; what is not UTF-8 is replaced.
std::string DumpJson(const Json& json);

struct ServerFacts {
  std::string log;  // the file's name
  int64_t started_unix_micros = 0, now_unix_micros = 0;
};
Json StatusJson(const Overview& overview, const LogFacts& log, const ServerFacts& server);
Json JobsJson(const v1::ListJobsResponse& jobs);
// The job, with the convergence of each task.
Json JobJson(const v1::JobProgress& job, const std::vector<TaskConvergence>& tasks);
// `task_keys` gives each row its task.
Json CandidatesJson(const std::vector<CandidateRow>& rows, const std::vector<int64_t>& task_keys);
Json DevicesJson(const Overview& overview, const DeviceHistory& history);
Json QueueJson(const Overview& overview);
// Failures, the newest first, together by status and by the first line of their error.
Json FailuresJson(const std::vector<StoredRecord>& newest_first);
Json RecordJson(const StoredRecord& stored);

// The best schedules of a key, by protocol.
struct KeyBest {
  KeyRow key;
  std::vector<StoredRecord> best;
};
Json BestJson(const std::vector<KeyBest>& keys, int64_t limit);

}  // namespace mycc
