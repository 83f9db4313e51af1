// The generations of a job as its log has them: when each was proposed, the points that were refused
// beforehand and why, and the candidates that failed. Thread rule: re-entrant; the log is only read.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/tuning_log.h"
#include "proto/job_state.pb.h"

namespace mycc {

struct GenerationFacts {
  uint32_t task = 0;
  uint32_t generation = 0;     // of the task
  double elapsed_seconds = 0;  // of the job, when it was proposed; 0 too in logs of older builds
  int64_t candidates = 0;
  std::optional<uint64_t> model;                               // the version that predicted them
  int64_t measured = 0;                                        // candidates with a result
  std::map<std::string, int64_t> failures;                     // results that are not ok, by status
  double best_seconds = 0;                                     // of its valid candidates; 0: none
  std::vector<v1::SearchState::Generation::Refusal> refusals;  // most frequent first

  int64_t failed() const;
  int64_t refused() const;  // points
};

// In the order of the job's proposals. Empty where `log gc` has deleted the search's state. NotFound when
// there is no such job, DataLoss when its state is damaged.
absl::StatusOr<std::vector<GenerationFacts>> ReadGenerations(TuningLog* log, const std::string& job);

// An array with an object for each.
nlohmann::ordered_json GenerationsJson(const std::vector<GenerationFacts>& generations);

// The job with its tasks and generations, for `log show JOB`: for people, or as one JSON object.
absl::Status ShowJob(TuningLog* log, const std::string& job, bool json, std::ostream& out);

}  // namespace mycc
