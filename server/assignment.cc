#include "server/assignment.h"

#include <variant>

#include "absl/status/statusor.h"
#include "codegen/schedule/trace_names.h"

namespace mycc {
namespace {

// Generations that share their random inputs: fresh enough, and the reference is not computed for every one.
constexpr uint32_t kGenerationsASeed = 8;

void SetFinalists(const FinalRoundWork& round, v1::Assignment* assignment) {
  assignment->set_trace(StoredTrace(round.traces[0]));
  for (size_t i = 1; i < round.traces.size(); ++i) assignment->add_rivals(StoredTrace(round.traces[i]));
}

}  // namespace

uint64_t InputSeed(uint64_t job_seed, const TrialId& id) {
  uint64_t mixed = job_seed + 0x9e3779b97f4a7c15u * (id.task + 1) +
                   0xbf58476d1ce4e5b9u * (id.generation / kGenerationsASeed);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  return mixed ^ (mixed >> 31);
}

v1::LeaseId LeaseOf(const Grant& grant) {
  v1::LeaseId lease;
  lease.set_trial(grant.work.name);
  lease.set_attempt(grant.work.attempt);
  return lease;
}

v1::Assignment AssignmentOf(const Grant& grant, const JobLedger& ledger) {
  v1::Assignment assignment;
  *assignment.mutable_lease() = LeaseOf(grant);
  const PlannedTask& task = ledger.plan().tasks[grant.work.task];
  assignment.set_workload(task.key.workload);
  assignment.set_target(task.key.target);
  if (const auto* const trial = std::get_if<TrialWork>(&grant.work.what)) {
    assignment.set_trace(StoredTrace(trial->trace));
  } else {
    SetFinalists(std::get<FinalRoundWork>(grant.work.what), &assignment);
  }
  assignment.set_protocol(task.protocol);
  assignment.set_best_seconds(ledger.best_seconds(grant.work.task));
  absl::StatusOr<TrialId> id = ParseTrialName(grant.work.name);
  // The inputs of the last generation, which workers have at hand.
  if (grant.work.is_round())
    id = TrialId{ledger.id(), grant.work.task, ledger.last_generation(grant.work.task)};
  if (id.ok()) assignment.set_seed(InputSeed(ledger.plan().spec.seed(), *id));
  return assignment;
}

}  // namespace mycc
