// What the log already knows when a job begins: frozen into the job, so that its search does not change when
// the log grows.
#pragma once

#include "absl/status/statusor.h"
#include "db/tuning_log.h"
#include "proto/job_state.pb.h"
#include "server/job_plan.h"

namespace mycc {

// The traces to begin with, best first: of this workload, of it on other targets, of the same computation at
// other shapes. `reused` where the log holds as many measured candidates as `trials` asks for (0: time is the
// limit, which no log satisfies), unless `fresh`.
absl::StatusOr<v1::StoredTask> RecallTask(const TuningLog& log, const PlannedTask& task,
                                          v1::TimingProtocol protocol, uint32_t trials, bool fresh);

}  // namespace mycc
