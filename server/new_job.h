// A job as it is first written: what was asked for, and what the log knew then. Reads the log, changes
// nothing.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/job_store.h"
#include "db/model_store.h"
#include "db/tuning_log.h"
#include "server/job_plan.h"

namespace mycc {

struct JobRequest {
  JobPlan plan;
  std::string submission;  // the client's words; empty: no other request is meant to find the job
  bool detached = false;   // nobody waits for it
};

struct NewJob {
  Job job;  // done already, where the log holds all that is asked for
  std::vector<Task> tasks;
};

// What JobsOf knows the submission by; empty for none.
std::string DigestOf(const std::string& submission);

absl::StatusOr<NewJob> MakeJob(const std::string& id, const JobRequest& request, uint32_t generation_size,
                               const TuningLog& log, const ModelStore& models);

}  // namespace mycc
