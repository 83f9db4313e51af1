#include "server/assignment.h"

#include "absl/status/statusor.h"
#include "codegen/schedule/trace_names.h"

namespace mycc {
namespace {

// Generations that share their random inputs: fresh enough, and the reference is not computed for every one.
constexpr uint32_t kGenerationsASeed = 8;

}  // namespace

uint64_t InputSeed(uint64_t job_seed, const TrialId& id) {
  uint64_t mixed = job_seed + 0x9e3779b97f4a7c15u * (id.task + 1) +
                   0xbf58476d1ce4e5b9u * (id.generation / kGenerationsASeed);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  return mixed ^ (mixed >> 31);
}

v1::LeaseId LeaseOf(const Grant& grant) {
  v1::LeaseId lease;
  lease.set_trial(grant.trial.name);
  lease.set_attempt(grant.trial.attempt);
  return lease;
}

v1::Assignment AssignmentOf(const Grant& grant, const ActiveJob& job) {
  v1::Assignment assignment;
  *assignment.mutable_lease() = LeaseOf(grant);
  const PlannedTask& task = job.plan().tasks[grant.trial.task];
  assignment.set_workload(task.key.workload);
  assignment.set_target(task.key.target);
  assignment.set_trace(StoredTrace(grant.trial.trace));
  assignment.set_protocol(task.protocol);
  assignment.set_best_seconds(job.best_seconds(grant.trial.task));
  for (const std::string& rival : grant.trial.rivals) assignment.add_rivals(StoredTrace(rival));
  absl::StatusOr<TrialId> id = ParseTrialName(grant.trial.name);
  // The inputs of the last generation, which workers have at hand.
  if (grant.trial.is_round()) id = TrialId{job.id(), grant.trial.task, job.last_generation(grant.trial.task)};
  if (id.ok()) assignment.set_seed(InputSeed(job.plan().spec.seed(), *id));
  return assignment;
}

}  // namespace mycc
