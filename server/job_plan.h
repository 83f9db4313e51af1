// Turns a client's job request into the tasks to tune: checked, in canonical form, with equal workloads
// merged. Also derives from a request the seconds of its search, the kind of its cost model, and the job id
// of older builds. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/target/target.h"
#include "codegen/workload/workload.h"
#include "db/record_table.h"
#include "proto/job_state.pb.h"
#include "proto/timing_protocol.h"
#include "proto/tuning.pb.h"
#include "server/job_terms.h"

namespace mycc {

struct PlannedTask {
  Workload workload;  // canonical
  Target target;
  KeyText key;  // canonical too, but for the name, which is the first one that the workload came under
  v1::TimingProtocol protocol = v1::TIMING_PROTOCOL_WARM;
  int64_t count = 1;  // launches in the model; 0: only another grouping launches it
  double weight = 1;  // of its seconds in the search
  std::vector<std::string>
      candidates;  // traces; of a job of the strategy `listed` (listed_job.h), until it is prepared
};

struct JobPlan {
  v1::JobSpec spec;  // canonical
  std::vector<PlannedTask> tasks;
};

// InvalidArgument names the fault and what was expected. A job without any limit needs a deadline. REQUIRES:
// a foreign job was listed (ListForeign).
absl::StatusOr<JobPlan> PlanJob(const v1::JobSpec& spec, bool has_deadline = false);

// How the workloads of a job are used.
KernelUse UseOf(const v1::JobSpec& spec);

// How a job's tasks for a target are timed.
v1::TimingProtocol ProtocolOf(const v1::JobSpec& spec, const Target& target);

// The weight of a task in the search.
double WeightOf(const v1::StoredTask& task);

// A kernel that takes a smaller share of its model's latency is negligible: it has its first generation, and
// no final round.
inline constexpr double kMinShareOfModel = 0.002;

// How much of a job's budget its search may take; the rest is for the final rounds of its tasks. 0: no limit.
double SearchSeconds(const v1::JobSpec& spec, size_t tasks);
// When the search of a job ends so that its final rounds are over at its deadline. REQUIRES: it has one.
int64_t SearchDeadline(const JobTerms& terms, int64_t created_unix_micros, size_t tasks);

// The bytes of tasks' specs, by the numbers of the tasks.
using TaskSpecs = std::vector<std::pair<uint32_t, std::string>>;

JobTerms TermsOf(const v1::StoredJob& job);
void ShowTerms(const JobTerms& terms, v1::JobProgress* progress);

// The number of trials that the job may take for `tasks` tasks to be searched; 0: time alone limits it.
int64_t TrialsPlanned(const v1::JobSpec& spec, int64_t tasks);

// The id that older builds gave to the n-th job of a submission, counted from 1.
std::string OldJobIdOf(const std::string& submission, int n);

}  // namespace mycc
