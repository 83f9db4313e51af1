// Makes the log's rows of a new job: first as it was submitted, then with what the log knew of its workloads.
// Pure functions but for reading the log.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/job_store.h"
#include "db/tuning_log.h"
#include "proto/tuning.pb.h"
#include "server/job_plan.h"

namespace mycc {

struct JobRequest {
  v1::JobSpec spec;        // PlanJob makes a plan of it
  std::string submission;  // the client's words; empty: no other request is meant to find the job
  bool detached = false;   // nobody waits for it
  std::string owner;
  int priority = 0;
  int64_t deadline_unix_micros = 0;  // 0: none
};

// The name by which JobsOf finds the submission; empty for none.
std::string DigestOf(const std::string& submission);

// Without tasks.
Job MakeJob(const std::string& id, const JobRequest& request, uint32_t generation_size);

struct PreparedJob {
  std::string spec;  // in place of the job's
  std::vector<Task> tasks;
  bool is_done = false;  // the log holds all that is asked for
};

// The tasks of a job that has none yet; a foreign job (listed_job.h) takes its candidates from the log, and
// is done where it has none. DataLoss when its bytes are damaged.
absl::StatusOr<PreparedJob> PrepareJob(const Job& job, TuningLog* log);

}  // namespace mycc
