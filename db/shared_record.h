// One measurement that speaks for the trials of several jobs: a candidate that another running job has
// measured is not measured again. Its trial is finished by the other trial's record, and has none of its own.
// Thread rule: thread-safe; each call is one transaction, durable when it returns OK.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/tuning_log.h"

namespace mycc {

// The newest record of the trace, under the protocol, that a trial of one of these jobs has made, with a
// verdict on the candidate. Nullopt: there is none.
absl::StatusOr<std::optional<StoredRecord>> RecordOfJobs(const TuningLog& log, const LogKey& key,
                                                         v1::TimingProtocol protocol,
                                                         const std::string& trace,
                                                         const std::set<std::string>& jobs);

// Finishes a trial by the record of another one. FailedPrecondition when the trial is not queued.
absl::Status FinishByRecordOf(TuningLog* log, const std::string& trial, const std::string& other);

// The record that finished the trial, its own or another's. NotFound when there is none.
absl::StatusOr<StoredRecord> RecordThatFinished(const TuningLog& log, const std::string& trial);

}  // namespace mycc
