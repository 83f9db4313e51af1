// All names in one place: the words for statuses and protocols, and the format of names of jobs and trials.
// Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/records.pb.h"

namespace mycc {

// "ok", "build_error", ...: the words that people read and that JSON carries. An unknown number is
// "status_42".
std::string StatusName(v1::MeasureStatus status);
absl::StatusOr<v1::MeasureStatus> ParseStatusName(const std::string& name);

// "warm", "cold".
std::string ProtocolName(v1::TimingProtocol protocol);
absl::StatusOr<v1::TimingProtocol> ParseProtocolName(const std::string& name);

// True for the statuses that are never the candidate's fault (device and worker lost): such a trial returns
// to the queue.
bool IsInfrastructureFailure(v1::MeasureStatus status);

// A job's id, from 128 random bits: "j" and 32 hexadecimal digits. Unique over all logs, so that logs merge.
std::string JobId(uint64_t high_bits, uint64_t low_bits);
// With 16 digits, as older builds made them, from the hash of what was submitted.
std::string JobId(uint64_t bits);
bool IsJobId(const std::string& text);

// A trial's name, "JOB/TASK/GENERATION/INDEX": where the candidate stands in its job's search. One trial is
// one record, whatever the number of attempts.
struct TrialId {
  std::string job;
  uint32_t task = 0;
  uint32_t generation = 0;
  uint32_t index = 0;  // within the generation

  bool operator==(const TrialId&) const = default;
};
std::string TrialName(const TrialId& id);
absl::StatusOr<TrialId> ParseTrialName(const std::string& name);

// The name of a repeated measurement of `trial`'s candidate (by `log verify` or a final round), made at a
// time; `trial` may be such a name itself.
std::string RemeasuredTrialName(const std::string& trial, int64_t unix_micros);

// The name of a result that another result of the same trial's name keeps from its own, "TRIAL#DIGEST": made
// from the 16 hexadecimal digits of its content (db/namesake.h). PlainTrialName: TRIAL, of any name.
std::string NamesakeName(const std::string& trial, const std::string& content_digest);
std::string PlainTrialName(const std::string& name);

// The name of a final round of a job's task, "JOB/TASK/final@MICROS": no trial's. IsFinalRoundOf: of any
// time.
std::string FinalRoundName(const std::string& job, uint32_t task, int64_t unix_micros);
bool IsFinalRoundOf(const std::string& job, uint32_t task, const std::string& name);

}  // namespace mycc
