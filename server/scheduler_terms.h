// The limits of a job's spec in the terms of its task scheduler (tuner/scheduler). Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/job_state.pb.h"
#include "server/job_ledger.h"
#include "server/job_plan.h"
#include "tuner/scheduler/task_scheduler.h"

namespace mycc {

// `tasks`: all of the job's.
SchedulerConfig SchedulerOf(const v1::StoredJob& job, const std::vector<PlannedTask>& tasks);

bool HasTimeLimit(const v1::StoredJob& job);

// The window of the job's proposals while few devices can measure for it (tuner/scheduler/generation_plan.h).
uint32_t LeastWindowOf(const JobLedger& ledger);

}  // namespace mycc
